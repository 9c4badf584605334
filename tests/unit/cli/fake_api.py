"""The API as the declarative commands see it, in memory and without sockets: bodies are kept as they come."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.support.api_document import api_document

Answer = httpx.Response
#: The path of an object -> what the API answers to a GET.
Objects = dict[str, dict[str, Any]]


def problem(
    status: int, name: str, detail: str, field_errors: list[dict[str, str]] | None = None, **headers: str
) -> Answer:
    body = {"type": f"urn:lagscale:problem:{name}", "title": name, "detail": detail, "errors": field_errors or []}
    return Answer(status, json=body, headers=headers)


@dataclass
class FakeApi:
    """Answers requests; `before` may answer first."""

    objects: Objects = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    before: Callable[[httpx.Request], Answer | None] = lambda _request: None
    page: int = 2
    #: How many monitors one request takes; 1: there are no bulk requests.
    bulk: int = 1

    def __call__(self, request: httpx.Request) -> Answer:
        path = request.url.path
        self.asked.append(f"{request.method} {path}" + ("?dryRun" if "dryRun" in request.url.params else ""))
        if path == "/openapi.json":
            return Answer(200, json=self._document())
        told = self.before(request)
        if told is not None:
            return told
        if request.method == "GET":
            return self._get(path, request)
        if request.method == "DELETE":
            return self._delete(path, request)
        return self._write(path, request)

    def _document(self) -> dict[str, Any]:
        document = api_document()
        schemas = {name: one for name, one in document["components"]["schemas"].items() if name != "ChangesIn"}
        if self.bulk > 1:
            schemas["ChangesIn"] = {"properties": {"items": {"type": "array", "maxItems": self.bulk}}}
        return {**document, "components": {**document["components"], "schemas": schemas}}

    def _get(self, path: str, request: httpx.Request) -> Answer:
        parts = path.strip("/").split("/")
        if len(parts) % 2:
            return Answer(200, json=self.objects[path]) if path in self.objects else self._missing()
        if len(parts) == 4 and f"/v1/tenants/{parts[2]}" not in self.objects:
            return self._missing()
        names = sorted(one for one in self.objects if one.rpartition("/")[0] == path)
        begin = int(request.url.params.get("cursor", 0))
        after = begin + self.page
        items = [self.objects[name] for name in names[begin:after]]
        return Answer(200, json={"items": items, "next": str(after) if after < len(names) else None})

    def _delete(self, path: str, request: httpx.Request) -> Answer:
        if path.endswith("/bindings"):
            path += f"/{request.url.params['instance']}%2F{request.url.params['namespace']}"
        return Answer(204) if self.objects.pop(path, None) is not None else self._missing()

    def _write(self, path: str, request: httpx.Request) -> Answer:
        body = json.loads(request.content)
        if path.endswith("/bulk"):
            return self._bulk(path.removesuffix("/bulk"), body["items"], request)
        return self._one(path, body, request)

    def _bulk(self, path: str, items: list[dict[str, Any]], request: httpx.Request) -> Answer:
        assert len(items) <= self.bulk
        told = []
        for item in items:
            own = f"{path}/{item['put'].pop('name')}"
            before = self.objects.get(own)
            if "version" in item and item["version"] != (0 if before is None else before["version"]):
                return problem(412, "precondition-failed", "An item has another version.")
            answer = self._one(own, item["put"], request)
            body = answer.json()
            outcome = "created" if answer.status_code == 201 else "unchanged" if body == before else "changed"
            differences = {"told": {"before": None, "after": "by bulk"}} if outcome == "changed" else {}
            told.append(
                {"name": body["name"], "outcome": outcome, "version": body["version"], "differences": differences}
            )
        return Answer(200, json={"items": told})

    def _one(self, path: str, body: dict[str, Any], request: httpx.Request) -> Answer:
        secrets = body.pop("secrets", None)
        if path.endswith("/bindings"):
            path += f"/{body.get('instance', 'default')}%2F{body['namespace']}"
            body = {"instance": "default"} | body
        present = self.objects.get(path)
        shown = {"name": path.rpartition("/")[2], "hasSecrets": secrets is not None} | body
        if present is not None and {name: present.get(name) for name in shown} == shown:
            return Answer(200, json=present)
        shown["version"] = 1 if present is None else present["version"] + 1
        if "dryRun" not in request.url.params:
            self.objects[path] = shown
        return Answer(201 if present is None else 200, json=shown)

    @staticmethod
    def _missing() -> Answer:
        return problem(404, "not-found", "Object not found.")
