"""What the API's document marks as write-only: secrets that go in and must never come out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.support.api_document import api_document

PEM = "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n"


def schemas() -> dict[str, Any]:
    """The document's schemas by name."""
    found: dict[str, Any] = api_document()["components"]["schemas"]
    return found


def write_only(schema: dict[str, Any], way: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The way to each secret of a body; one that is a whole object has a secret under every name that it knows."""
    for name, field in schema.get("properties", {}).items():
        parts = (field, *field.get("anyOf", ()), field.get("items", {}))
        listed = ("0",) if any("items" in part for part in parts) else ()
        if any(part.get("writeOnly") for part in parts):
            known = field.get("propertyNames", {}).get("enum", ("",))
            yield from ((*way, name, *filter(None, (inner,))) for inner in known)
        for part in parts:
            if "$ref" in part:
                yield from write_only(schemas()[part["$ref"].rpartition("/")[2]], (*way, name, *listed))


def secret_routes() -> list[tuple[str, str, tuple[str, ...]]]:
    """(method, path, way) of every secret that the API takes."""
    return [
        (method.upper(), path, way)
        for path, operations in api_document()["paths"].items()
        for method, operation in operations.items()
        if "requestBody" in operation
        for way in write_only(
            schemas()[operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]]
        )
    ]


def placed(way: tuple[str, ...], value: Any) -> Any:
    """A body with this value there."""
    for step in reversed(way):
        value = [value] if step == "0" else {step: value}
    return value
