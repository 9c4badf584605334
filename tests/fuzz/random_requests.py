"""Random requests of every route that the OpenAPI document names, as one tenant's keys send them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import httpx

from tests.fuzz.tenant_isolation.isolated_tenants import CLUSTERS, MONITORS, NAMESPACES, IsolatedTenant, Names

Document = Mapping[str, Any]
_METHODS = {"get", "put", "post", "delete", "patch"}
_MONITOR = {"name": "{only}", "cluster": "main", "consumerGroup": "readers", "topics": ["orders"]}
#: Without these most bodies say nothing, though none of them is required of every body.
_TELLING = {"name", "put", "consumerGroup", "topics", "forSeconds"}
_STRANGE = ("none", "0x", "%27or%271", "a" * 70, "..", "ORDERS", "main%00", "1x", "*", "%C3%A4")


@dataclass(frozen=True)
class Request:
    """One request but for the names that differ between tenants.

    Attributes:
        route: as in the document.
        able: whether it is an administrator's, and names what may be there.
    """

    route: str
    able: bool
    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str]

    @property
    def of_a_tenant(self) -> bool:
        """Whether the path names one."""
        return "{tenant}" in self.path

    @property
    def of_one_object(self) -> bool:
        """Whether it is about something that one tenant alone has, and makes no such thing."""
        return ("{only}" in self.path or "{prefix}" in self.path) and not self.route.startswith("PUT")

    def __str__(self) -> str:
        return f"{self.route.split()[0]} {self.path} {self.query} {self.body}"

    async def send(self, api: httpx.AsyncClient, names: Names) -> httpx.Response:
        """Send it with these names."""
        query = {key: names.into(value) for key, value in self.query.items()}
        body = None if self.body is None else json.loads(names.into(json.dumps(self.body)))
        method = self.route.split()[0]
        return await api.request(method, names.into(self.path), params=query, json=body, headers=self.headers)


class RandomRequests:
    """Requests of one tenant, with names, keys and cursors of its own and of another; of some routes, or of all."""

    def __init__(
        self,
        random: Random,
        document: Document,
        mine: IsolatedTenant,
        theirs: IsolatedTenant,
        some: Collection[str] = (),
    ) -> None:
        self._random = random
        self._document = document
        self._mine = mine
        self._theirs = theirs
        self._routes = [(route, operation) for route, operation in routes(document) if not some or route in some]

    def next(self) -> Request:
        """One request."""
        random = self._random
        route, operation = random.choice(self._routes)
        path = route.split()[1]
        query: dict[str, str] = {}
        role = random.choice(("tenant-admin",) * 6 + ("tenant-viewer",) * 2 + ("revoked", "none"))
        headers = dict(self._mine.keys.get(role, {"Authorization": "Bearer lsk_000000000000_x"}))
        for parameter in operation.get("parameters", ()):
            name, place = parameter["name"], parameter["in"]
            if place == "path" and name != "tenant":
                path = path.replace(f"{{{name}}}", self._name(name))
            elif place == "query" and random.randrange(10) < (9 if parameter.get("required") else 2):
                query[name] = self._value(name, parameter.get("schema", {}))
            elif place == "header" and random.randrange(8) == 0:
                headers[name] = random.choice(('"1"', '"2"', '"none"', "*", "x"))
        content = operation.get("requestBody", {}).get("content", {})
        schema = content.get("application/json", {}).get("schema")
        body = None if schema is None else self._body(schema)
        if isinstance(body, dict) and not route.startswith("POST"):
            body.pop("name", None)  # The path tells it.
        able = role == "tenant-admin" and not any(f"/{name}" in path for name in _STRANGE)
        return Request(route, able, path, query, body, headers)

    def learn(self, answer: httpx.Response) -> None:
        """Keep a cursor that was given."""
        if answer.status_code == 200 and answer.headers.get("content-type", "").startswith("application/json"):
            told = answer.json()
            if isinstance(told, dict) and isinstance(told.get("next"), str):
                self._mine.cursors = [*self._mine.cursors[-20:], told["next"]]

    def _name(self, parameter: str) -> str:
        random = self._random
        if random.randrange(10) == 0:
            return random.choice(_STRANGE)
        if parameter == "prefix":
            return "{prefix}"
        names = CLUSTERS if parameter == "cluster" else MONITORS
        return random.choice((*names, *names, "made", "{only}", "{only}"))

    def _value(self, name: str, schema: Document) -> str:
        random = self._random
        if random.randrange(12) == 0:
            return random.choice(("x", "-1", "", "none"))
        moments = ("2026-01-01T00:00:00Z", "2999-01-01T00:00:00Z")
        known: dict[str, tuple[str, ...]] = {
            "cursor": (*self._mine.cursors[-3:], *self._theirs.cursors[-3:], "made-up"),
            "namespace": (*NAMESPACES, "*"),
            "instance": ("default", self._mine.instance, self._theirs.instance),
            "cluster": (*CLUSTERS, "{only}"),
            "object": ("cluster/main", "monitor/{only}", "key/{prefix}", "tenant/{tenant}"),
            **dict.fromkeys(("at", "from", "to", "since", "until"), moments),
        }
        kinds = {"boolean": ("true", "false"), "integer": ("1", "2", "100"), "number": ("1", "2.5")}
        told = {part.get("type") for part in (schema, *schema.get("anyOf", ()))}
        fitting = next((values for kind, values in kinds.items() if kind in told), ("orders", "main", "latest"))
        return random.choice(known.get(name, fitting))

    def _body(self, schema: Document, depth: int = 0) -> Any:
        """Something like the schema: examples, names of either tenant, and things left out."""
        random = self._random
        schema = self._resolved(schema)
        for choice in ("anyOf", "oneOf", "allOf"):
            if choice in schema:
                return self._body(random.choice(schema[choice]), depth)
        if schema.get("examples") and random.randrange(20):
            return random.choice(schema["examples"])
        kind = schema.get("type")
        if kind == "object" and depth < 4:
            return self._object(schema, depth)
        if kind == "array":
            return [self._body(schema.get("items", {}), depth + 1) for _ in range(random.randrange(3))]
        values = {"integer": (0, 1, 10, 100, -1), "number": (0, 1.5, -1), "boolean": (True, False), "null": (None,)}
        return random.choice(values.get(str(kind), ("orders", "main", "x", "{tenant}", "{only}")))

    def _object(self, schema: Document, depth: int) -> dict[str, Any]:
        random = self._random
        required = set(schema.get("required", ()))
        made = {
            name: self._property(name, part, depth)
            for name, part in schema.get("properties", {}).items()
            if random.randrange(30) < (29 if name in required | _TELLING else 6)
        }
        return {name: value for name, value in made.items() if value is not None}

    def _property(self, name: str, schema: Document, depth: int) -> Any:
        random = self._random
        known: dict[str, tuple[Any, ...]] = {
            "cluster": (*CLUSTERS, "{only}"),
            "name": (*MONITORS, *CLUSTERS, "made", "{only}", f"n{random.randrange(1000)}"),
            "delete": (*MONITORS, "{only}"),
            "namespace": NAMESPACES,
            "topics": (["orders"], ["logs", "orders"], ["more"]),
            "until": (None,),
            "items": ([{"delete": "orders"}], [{"delete": "{only}"}], [{"put": _MONITOR}, {"delete": "logs"}]),
        }
        return random.choice(known[name]) if name in known and random.randrange(15) else self._body(schema, depth + 1)

    def _resolved(self, schema: Document) -> Document:
        while "$ref" in schema:
            schema = self._document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
        return schema


def routes(document: Document) -> Iterator[tuple[str, Document]]:
    """(`METHOD /path`, operation) of every route."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if method in _METHODS:
                yield f"{method.upper()} {path}", operation
