"""One example of every route that changes something, and what it leaves in the audit. A new route belongs here.

The examples are run in this order: each may need what those before it made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CANARY = "canary-7f3a9c-in-the-secret"


@dataclass(frozen=True)
class Writing:
    """A request that changes something.

    Attributes:
        route: as in the OpenAPI document, `METHOD /path`.
        values: of the path's parameters; `tenant` and what `kept` names are filled in.
        query: after the path.
        body: None for none.
        events: `action object` of each audit row that it must leave, in any order; a `{name}` is filled in.
        platform: whether they are the platform's rows.
        keep: name -> field of the answer that later examples need.
        status: of the answer.
    """

    route: str
    events: tuple[str, ...]
    values: Mapping[str, str] = field(default_factory=dict)
    query: str = ""
    body: Any = None
    platform: bool = False
    keep: Mapping[str, str] = field(default_factory=dict)
    status: int = 201


_CLUSTER = {
    "bootstrapServers": ["127.0.0.1:9092"],
    "security": {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": "u"},
    "secrets": {"password": CANARY},
}
_MONITOR = {"cluster": "main", "consumerGroup": "readers", "topics": ["orders"]}
_T = "/v1/tenants/{tenant}"


def _freezing(path: str, of: str, values: Mapping[str, str]) -> tuple[Writing, Writing]:
    named = f"{of}/{next(iter(values.values()), '{tenant}')}"
    body = {"reason": "a test", "forSeconds": 600}
    return (
        Writing(f"PUT {_T}{path}/freeze", (f"{of}.freeze {named}",), values, body=body),
        Writing(f"DELETE {_T}{path}/freeze", (f"{of}.unfreeze {named}",), values, status=204),
    )


WRITINGS = (
    Writing("POST /v1/tenants", ("tenant.create tenant/{tenant}",), body={"name": "{tenant}"}, platform=True),
    Writing(f"PUT {_T}/quotas", ("tenant.quotas tenant/{tenant}",), body={"clusters": 7}, status=200),
    Writing(
        f"PUT {_T}",
        ("tenant.update tenant/{tenant}",),
        body={"displayName": "A shop", "maxClusters": 7},
        platform=True,
        status=200,
    ),
    Writing(f"POST {_T}/clusters", ("cluster.create cluster/main",), body=_CLUSTER | {"name": "main"}),
    Writing(
        f"PUT {_T}/clusters/{{cluster}}",
        ("cluster.update cluster/main",),
        {"cluster": "main"},
        body=_CLUSTER | {"secrets": {"password": f"{CANARY}-2"}},
        status=200,
    ),
    Writing(f"POST {_T}/monitors", ("monitor.create monitor/orders",), body=_MONITOR | {"name": "orders"}),
    Writing(
        f"PUT {_T}/monitors/{{monitor}}",
        ("monitor.update monitor/orders",),
        {"monitor": "orders"},
        body=_MONITOR | {"policy": {"lagThreshold": 7}},
        status=200,
    ),
    *(
        writing
        for path, of, values in (
            ("", "tenant", {}),
            ("/clusters/{cluster}", "cluster", {"cluster": "main"}),
            ("/monitors/{monitor}", "monitor", {"monitor": "orders"}),
        )
        for writing in _freezing(path, of, values)
    ),
    Writing(f"DELETE {_T}/monitors/{{monitor}}", ("monitor.delete monitor/orders",), {"monitor": "orders"}, status=204),
    Writing(
        f"POST {_T}/monitors/{{monitor}}/restore",
        ("monitor.restore monitor/orders",),
        {"monitor": "orders"},
        status=200,
    ),
    Writing(
        f"POST {_T}/monitors/bulk",
        ("monitor.delete monitor/orders", "monitor.create monitor/logs"),
        body={"items": [{"delete": "orders"}, {"put": _MONITOR | {"name": "logs", "topics": ["logs"]}}]},
        status=200,
    ),
    Writing(
        f"POST {_T}/monitors/bulk", ("monitor.delete monitor/logs",), body={"items": [{"delete": "logs"}]}, status=200
    ),
    Writing(f"DELETE {_T}/clusters/{{cluster}}", ("cluster.delete cluster/main",), {"cluster": "main"}, status=204),
    Writing(
        f"POST {_T}/bindings",
        ("binding.create binding/{tenant}/prod",),
        body={"instance": "{tenant}", "namespace": "prod"},
    ),
    Writing(
        f"DELETE {_T}/bindings",
        ("binding.delete binding/{tenant}/prod",),
        query="?instance={tenant}&namespace=prod",
        status=204,
    ),
    Writing(
        f"POST {_T}/keys",
        ("key.create key/{key}",),
        body={"name": "ci", "role": "tenant-admin"},
        keep={"key": "prefix"},
    ),
    Writing(
        f"POST {_T}/keys/{{prefix}}/rotate",
        ("key.rotate key/{key}", "key.create key/{successor}"),
        {"prefix": "{key}"},
        body={},
        keep={"successor": "prefix"},
    ),
    Writing(f"DELETE {_T}/keys/{{prefix}}", ("key.revoke key/{key}",), {"prefix": "{key}"}, status=204),
    Writing(
        "POST /v1/keys",
        ("key.create key/{platform_key}",),
        body={"name": "team"},
        platform=True,
        keep={"platform_key": "prefix"},
    ),
    Writing(
        "POST /v1/keys/{prefix}/rotate",
        ("key.rotate key/{platform_key}", "key.create key/{platform_successor}"),
        {"prefix": "{platform_key}"},
        body={},
        platform=True,
        keep={"platform_successor": "prefix"},
    ),
    Writing(
        "DELETE /v1/keys/{prefix}",
        ("key.revoke key/{platform_key}",),
        {"prefix": "{platform_key}"},
        platform=True,
        status=204,
    ),
    Writing(f"DELETE {_T}", ("tenant.delete tenant/{tenant}",), platform=True, status=204),
)
