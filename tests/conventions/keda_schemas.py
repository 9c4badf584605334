"""KEDA's schemas from tests/data/keda: what is valid for the API server, unknown fields forbidden."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import yaml

SCHEMAS = Path(__file__).parents[1] / "data" / "keda"


def closed(schema: Any) -> Any:
    """The schema with unknown fields forbidden, because Kubernetes would drop them without a word."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    done = {name: closed(item) for name, item in schema.items()}
    if (
        isinstance(done.get("properties"), dict)
        and "additionalProperties" not in done
        and done.get("type") == "object"
        and not done.get("x-kubernetes-preserve-unknown-fields")
    ):
        done["additionalProperties"] = False
    return done


@cache
def validators() -> dict[str, Any]:
    """Kind -> what checks an object of it."""
    # The file of ScaledJobs is large: it holds all of a pod's template.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found = {}
    for path in SCHEMAS.glob("*.yaml"):
        spec = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)["spec"]
        schema = closed(spec["versions"][0]["schema"]["openAPIV3Schema"])
        found[spec["names"]["kind"]] = jsonschema.Draft202012Validator(schema)
    return found


def validate(item: dict[str, Any]) -> None:
    """Check an object of KEDA's.

    Raises:
        jsonschema.ValidationError: it is not valid.
    """
    validators()[item["kind"]].validate(item)
