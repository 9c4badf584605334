"""Random requests of every route that the OpenAPI document names, as one tenant's keys send them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import httpx

from tests.fuzz.walled_tenants import CLUSTERS, MONITORS, Walled, strange

Document = Mapping[str, Any]
_METHODS = {"get", "put", "post", "delete", "patch"}


@dataclass(frozen=True)
class Request:
    """One request but for the tenant that its path names."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str]

    @property
    def of_a_tenant(self) -> bool:
        """Whether the path names one."""
        return "{tenant}" in self.path

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.query} {self.body}"

    async def send(self, api: httpx.AsyncClient, tenant: str) -> httpx.Response:
        """Send it for a tenant."""
        path = self.path.replace("{tenant}", tenant)
        return await api.request(self.method, path, params=self.query, json=self.body, headers=self.headers)


class RandomRequests:
    """Requests of one tenant, with names, keys and cursors of its own and of another."""

    def __init__(self, random: Random, document: Document, mine: Walled, theirs: Walled) -> None:
        self._random = random
        self._document = document
        self._mine = mine
        self._theirs = theirs
        self._routes = list(_routes(document))

    def next(self) -> Request:
        """One request."""
        random = self._random
        path, method, operation = random.choice(self._routes)
        query: dict[str, str] = {}
        for parameter in operation.get("parameters", ()):
            name = parameter["name"]
            if parameter["in"] == "path" and name != "tenant":
                path = path.replace(f"{{{name}}}", self._name(name, path))
            elif parameter["in"] == "query" and random.randrange(3) == 0:
                query[name] = self._value(name)
        content = operation.get("requestBody", {}).get("content", {})
        schema = content.get("application/json", {}).get("schema")
        body = None if schema is None else self._body(schema)
        role = random.choice(("tenant-admin",) * 6 + ("tenant-viewer",) * 2 + ("revoked", "none"))
        headers = self._mine.keys.get(role, {"Authorization": "Bearer lsk_000000000000_x"})
        return Request(method.upper(), path, query, body, headers)

    def learn(self, answer: httpx.Response) -> None:
        """Keep a cursor that was given."""
        if answer.status_code == 200 and answer.headers.get("content-type", "").startswith("application/json"):
            told = answer.json()
            if isinstance(told, dict) and isinstance(told.get("next"), str):
                self._mine.cursors = [*self._mine.cursors[-20:], told["next"]]

    def _name(self, parameter: str, path: str) -> str:
        random = self._random
        if parameter == "prefix":
            # The tenant's own keys are needed to the end.
            return random.choice((*self._theirs.prefixes, "000000000000"))
        names = CLUSTERS if parameter == "cluster" or "/clusters/" in path else MONITORS
        return random.choice((*names, *names, *names, "made", strange(random)))

    def _value(self, name: str) -> str:
        random = self._random
        cursors = [*self._mine.cursors[-3:], *self._theirs.cursors[-3:], "made-up"]
        known: dict[str, tuple[str, ...]] = {
            "cursor": tuple(cursors),
            "limit": ("1", "2", "1000", "0", "x"),
            "at": ("2026-01-01T00:00:00Z", "0", "now"),
            "namespace": (self._mine.namespace, self._theirs.namespace, "*"),
            "instance": ("default", "none"),
        }
        return random.choice(known.get(name, ("true", "false", "1", "orders", "main", "2026-01-01T00:00:00Z")))

    def _body(self, schema: Document, depth: int = 0) -> Any:
        """Something like the schema: examples, names of either tenant, and things left out."""
        random = self._random
        schema = self._resolved(schema)
        for choice in ("anyOf", "oneOf", "allOf"):
            if choice in schema:
                return self._body(random.choice(schema[choice]), depth)
        if schema.get("examples") and random.randrange(4):
            return random.choice(schema["examples"])
        kind = schema.get("type")
        if kind == "object" and depth < 4:
            return self._object(schema, depth)
        if kind == "array":
            return [self._body(schema.get("items", {}), depth + 1) for _ in range(random.randrange(3))]
        values = {"integer": (0, 1, 10, 100, -1), "number": (0, 1.5, -1), "boolean": (True, False), "null": (None,)}
        return random.choice(values.get(str(kind), ("orders", "main", "x", self._theirs.name)))

    def _object(self, schema: Document, depth: int) -> dict[str, Any]:
        random = self._random
        required = set(schema.get("required", ()))
        made = {
            name: self._property(name, part, depth)
            for name, part in schema.get("properties", {}).items()
            if (random.randrange(10) if name in required else random.randrange(3) == 0)
        }
        return {name: value for name, value in made.items() if value is not None}

    def _property(self, name: str, schema: Document, depth: int) -> Any:
        random = self._random
        if name == "cluster" and random.randrange(5):
            return random.choice(CLUSTERS)
        if name in {"namespace", "tenant"}:
            return random.choice((self._mine.namespace, self._theirs.namespace, self._theirs.name))
        return self._body(schema, depth + 1)

    def _resolved(self, schema: Document) -> Document:
        while "$ref" in schema:
            schema = self._document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
        return schema


def _routes(document: Document) -> Iterator[tuple[str, str, Document]]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if method in _METHODS:
                yield path, method, operation
