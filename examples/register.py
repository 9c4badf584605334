"""Registers a tenant with its clusters, monitors and bindings from a JSON file, over the REST API.

Run it as often as you like: what is so already stays untouched.

    LAGSCALE_API_URL=http://127.0.0.1:8080 LAGSCALE_API_KEY=... python examples/register.py examples/eleven-services.json
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

Call = tuple[str, str, dict[str, Any]]


def calls(document: dict[str, Any], bootstrap: str | None) -> Iterator[Call]:
    """Method, path and body of each request, in the order in which things need each other."""
    tenant = document["tenant"]["name"]
    yield "PUT", f"/v1/tenants/{tenant}", document["tenant"]
    for kind in ("clusters", "monitors"):
        for given in document.get(kind, []):
            body = {**given, "bootstrapServers": bootstrap} if kind == "clusters" and bootstrap else given
            yield "PUT", f"/v1/tenants/{tenant}/{kind}/{given['name']}", body
    for given in document.get("bindings", []):
        yield "POST", f"/v1/tenants/{tenant}/bindings", given


def register(api: httpx.Client, document: dict[str, Any], bootstrap: str | None) -> int:
    """Make every request; how many the API refused."""
    refused = 0
    for method, path, body in calls(document, bootstrap):
        answer = api.request(method, path, json=body)
        if answer.is_error:
            refused += 1
            print(f"{answer.status_code} {path}: {answer.json().get('detail', answer.text)}", file=sys.stderr)
        else:
            print(f"{'created' if answer.status_code == 201 else 'is so  '} {path}")
            for warning in answer.json().get("warnings", []):
                print(f"warning {path}: {warning['field']}: {warning['text']}", file=sys.stderr)
    return refused


def main() -> int:
    """0 when all is registered, 1 when the API refused something, 8 when it does not answer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="what to register, as in eleven-services.json")
    parser.add_argument("--bootstrap", metavar="HOST:PORT", help="bootstrap servers, instead of those of the file")
    parser.add_argument("--tenant", help="the tenant's name, instead of that of the file")
    parser.add_argument("--namespace", help="the Kubernetes namespace to bind, instead of those of the file")
    given = parser.parse_args()
    document = json.loads(given.file.read_text(encoding="utf-8"))
    if given.tenant:
        document["tenant"]["name"] = given.tenant
    if given.namespace:
        document["bindings"] = [{"namespace": given.namespace}]
    key = os.environ.get("LAGSCALE_API_KEY", "")
    url = os.environ.get("LAGSCALE_API_URL", "http://127.0.0.1:8080")
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=30) as api:
        try:
            return 1 if register(api, document, given.bootstrap) else 0
        except httpx.HTTPError as wrong:
            print(f"the API at {url} does not answer: {wrong}", file=sys.stderr)
            return 8


if __name__ == "__main__":
    sys.exit(main())
