"""What the API's fuzz needs to exist: a tenant with one of everything, three callers, and names that lead there."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import httpx
import requests
from hypothesis import strategies as st

from lagscale.store.registry.api_keys import PLATFORM_ADMIN, TENANT_ADMIN, TENANT_VIEWER

TENANT, OTHER = "fuzzed", "elsewhere"
#: Nothing has this name before a request.
FREE = "free"
ROLES = (PLATFORM_ADMIN, TENANT_ADMIN, TENANT_VIEWER)
_CLUSTER = {"bootstrapServers": ["127.0.0.1:9"]}
_MONITOR = {"cluster": "main", "consumerGroup": "readers", "topics": ["orders"]}
_FREEZE = {"reason": "a test", "forSeconds": 600}
#: Many at once, of what is there.
CHANGES = [{"put": {**_MONITOR, "name": "logs"}}, {"delete": "orders"}]
#: Of the tenant: (path, body), in the order of need. Each is there before every request.
_OBJECTS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("", {}),
    ("/clusters/main", _CLUSTER),
    ("/clusters/spare", _CLUSTER),
    ("/monitors/orders", _MONITOR),
    ("/monitors/logs", _MONITOR | {"consumerGroup": "loggers"}),
    ("/freeze", _FREEZE),
    ("/clusters/main/freeze", _FREEZE),
    ("/clusters/spare/freeze", _FREEZE),
    ("/monitors/orders/freeze", _FREEZE),
)


class World:
    """The objects, and the callers' keys.

    Attributes:
        url: of the API.
        session: by which cases are sent.
        keys: role -> header.
        query: parameter -> what leads to an object.
        prefixes: of keys that may be revoked and rotated; those of the callers are not among them.
    """

    query = MappingProxyType({"namespace": "bound", "instance": "fuzz"})

    def __init__(self, url: str, admin: str) -> None:
        self.url, self.session = url, requests.Session()
        self._http = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {admin}"}, timeout=30)
        self.keys: dict[str, dict[str, str]] = {}
        self.prefixes: dict[str, str] = {}
        self.restore()
        self.keys[PLATFORM_ADMIN] = {"Authorization": f"Bearer {admin}"}
        for role in (TENANT_ADMIN, TENANT_VIEWER):
            made = self._ask("POST", f"/v1/tenants/{TENANT}/keys", {"name": "caller", "role": role})
            self.keys[role] = {"Authorization": f"Bearer {made['key']}"}

    def close(self) -> None:
        """Ask no more."""
        self.session.close()
        self._http.close()

    def restore(self) -> None:
        """Put back what a request may have changed or deleted."""
        self._ask("PUT", f"/v1/tenants/{OTHER}", {})
        for path, body in _OBJECTS:
            self._ask("PUT", f"/v1/tenants/{TENANT}{path}", body)
        self._ask("POST", f"/v1/tenants/{TENANT}/bindings", dict(self.query))
        for path in (
            f"/v1/tenants/{TENANT}/monitors/{FREE}",
            f"/v1/tenants/{TENANT}/clusters/{FREE}",
            f"/v1/tenants/{FREE}",
        ):
            self._http.delete(path)
        self._http.delete(f"/v1/tenants/{TENANT}/monitors/gone")
        self._ask("PUT", f"/v1/tenants/{TENANT}/monitors/gone", _MONITOR | {"consumerGroup": "leavers"})
        self._ask("DELETE", f"/v1/tenants/{TENANT}/monitors/gone")
        for path in (f"/v1/tenants/{TENANT}/keys", "/v1/keys"):
            body = {"name": "spare"} | ({"role": TENANT_VIEWER} if TENANT in path else {})
            self.prefixes[path] = self._ask("POST", path, body)["prefix"]

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        answer = self._http.request(method, path, json=body)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def names(self, path: str, *, delete: bool = False) -> st.SearchStrategy[dict[str, str]]:
        """A name for every parameter, most of which lead to an object."""
        keys = f"/v1/tenants/{TENANT}/keys" if "{tenant}" in path else "/v1/keys"
        monitors = ["gone"] if path.endswith("/restore") else ["orders", "logs"]
        # Only an empty tenant can be deleted, and only a cluster without monitors.
        tenants = [OTHER] if delete and path.endswith("{tenant}") else [TENANT]
        return st.fixed_dictionaries(
            {
                "tenant": _mostly(tenants, [TENANT, OTHER, "missing"]),
                "cluster": _mostly(["spare"] if delete else ["main", "spare"], ["missing"]),
                "monitor": _mostly(monitors, ["missing", "gone"]),
                # A spare one is another after each request that used it up.
                "prefix": _mostly([keys], ["0" * 12]).map(lambda found: self.prefixes.get(found, found)),
            }
        )


def _mostly(there: list[str], elsewhere: list[str]) -> st.SearchStrategy[str]:
    return st.sampled_from(there * (6 // len(there)) + elsewhere)
