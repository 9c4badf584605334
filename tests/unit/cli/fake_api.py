"""The API as the declarative commands see it, in memory and without sockets: bodies are kept as they come."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.api_document import api_document

Answer = httpx.Response
#: The path of an object -> what the API answers to a GET.
Objects = dict[str, dict[str, Any]]


def problem(status: int, name: str, detail: str, faults: list[dict[str, str]] | None = None, **headers: str) -> Answer:
    body = {"type": f"urn:lagscale:problem:{name}", "title": name, "detail": detail, "errors": faults or []}
    return Answer(status, json=body, headers=headers)


@dataclass
class FakeApi:
    """Answers requests; `before` may answer first."""

    objects: Objects = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    before: Callable[[httpx.Request], Answer | None] = lambda _request: None
    page: int = 2

    def __call__(self, request: httpx.Request) -> Answer:
        path = request.url.path
        self.asked.append(f"{request.method} {path}" + ("?dryRun" if "dryRun" in request.url.params else ""))
        if path == "/openapi.json":
            return Answer(200, json=api_document())
        told = self.before(request)
        if told is not None:
            return told
        if request.method == "GET":
            return self._get(path, request)
        if request.method == "DELETE":
            return self._delete(path, request)
        return self._write(path, request)

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
        secrets = body.pop("secrets", None)
        if request.method == "POST":
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
        return problem(404, "not-found", "There is no such object for this caller.")
