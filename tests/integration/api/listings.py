"""How objects come and go in each list of the API that is read page by page. A new list belongs here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.integration.api.conftest import Shop
from tests.support.stored_rounds import write

T = "/v1/tenants/{tenant}"


@dataclass(frozen=True)
class Listing:
    """One list.

    Attributes:
        path: as in the OpenAPI document.
        make: makes an object by a name of its own; the answer tells it in the list.
        of: what tells an object of the list.
        remove: takes it out of the list; None where nothing ever is.
        query: of the list.
        begin: what must be there before.
    """

    path: str
    make: Callable[[Shop, str], Awaitable[str]]
    of: Callable[[Mapping[str, Any]], str] = lambda item: item["name"]
    remove: Callable[[Shop, str], Awaitable[None]] | None = None
    query: Mapping[str, str] | None = None
    begin: Callable[[Shop], Awaitable[None]] | None = None


async def ask(shop: Shop, method: str, path: str, body: Any = None, **query: str) -> Any:
    answer = await shop.api.request(method, path.replace("{tenant}", shop.name), json=body, params=query or None)
    assert answer.is_success, f"{method} {path}: {answer.text}"
    return answer.json() if answer.content else None


async def _tenant(shop: Shop, name: str) -> str:
    await ask(shop, "PUT", f"/v1/tenants/{shop.name}-{name}", {})
    return f"{shop.name}-{name}"


async def _no_tenant(shop: Shop, name: str) -> None:
    await ask(shop, "DELETE", f"/v1/tenants/{name}")


async def _cluster(shop: Shop, name: str) -> str:
    await ask(shop, "PUT", f"{T}/clusters/{name}", {"bootstrapServers": ["127.0.0.1:9"]})
    return name


async def _no_cluster(shop: Shop, name: str) -> None:
    await ask(shop, "DELETE", f"{T}/clusters/{name}")


async def _monitor(shop: Shop, name: str) -> str:
    body = {"cluster": "main", "consumerGroup": "readers", "topics": ["orders"], "policy": {"sustainSeconds": 30}}
    await ask(shop, "PUT", f"{T}/monitors/{name}", body)
    return name


async def _no_monitor(shop: Shop, name: str) -> None:
    await ask(shop, "DELETE", f"{T}/monitors/{name}")


async def _deleted(shop: Shop, name: str) -> str:
    await _monitor(shop, name)
    await _no_monitor(shop, name)
    return name


async def _restored(shop: Shop, name: str) -> None:
    await ask(shop, "POST", f"{T}/monitors/{name}/restore")


async def _forbidden(shop: Shop, name: str) -> str:
    await ask(shop, "PUT", T, {})
    await _monitor(shop, name)
    await ask(shop, "PUT", T, {"policyLimits": {"sustainSeconds": {"min": 60}}})
    return name


async def _binding(shop: Shop, name: str) -> str:
    await ask(shop, "POST", f"{T}/bindings", {"instance": shop.name, "namespace": name})
    return name


async def _no_binding(shop: Shop, name: str) -> None:
    await ask(shop, "DELETE", f"{T}/bindings", instance=shop.name, namespace=name)


async def _freeze(shop: Shop, name: str) -> str:
    await _monitor(shop, name)
    await ask(shop, "PUT", f"{T}/monitors/{name}/freeze", {"reason": "a test", "forSeconds": 600})
    return f"monitor {name}"


async def _no_freeze(shop: Shop, name: str) -> None:
    await ask(shop, "DELETE", f"{T}/monitors/{name.removeprefix('monitor ')}/freeze")


async def _frozen_all(shop: Shop) -> None:
    for path in (T, f"{T}/clusters/main"):
        await ask(shop, "PUT", f"{path}/freeze", {"reason": "a test", "forSeconds": 600})


def _key(path: str, **given: str) -> Callable[[Shop, str], Awaitable[str]]:
    async def make(shop: Shop, name: str) -> str:
        return str((await ask(shop, "POST", path, {"name": name, **given}))["prefix"])

    return make


async def _event(shop: Shop, name: str) -> str:
    await _monitor(shop, name)
    newest = await ask(shop, "GET", f"{T}/audit", object=f"monitor/{name}")
    return str(newest["items"][0]["id"])


async def _measured(shop: Shop) -> None:
    await _monitor(shop, "orders")


def sampled(url: str) -> Callable[[Shop, str], Awaitable[str]]:
    """Writes a round; the name says how old it is."""

    async def make(shop: Shop, name: str) -> str:
        age = sum((index + 1) * ord(letter) for index, letter in enumerate(name))
        write(url, shop.name, "orders", [(age, (age,))])
        return str(age)

    return make


def listings(url: str) -> dict[str, Listing]:
    """All of them by their names; `url` is the database's."""
    keys = {"of": lambda item: item["prefix"]}
    events = {"of": lambda item: item["id"]}
    found = (
        Listing("/v1/tenants", _tenant, remove=_no_tenant),
        Listing(f"{T}/clusters", _cluster, remove=_no_cluster),
        Listing(f"{T}/monitors", _monitor, remove=_no_monitor),
        Listing(f"{T}/monitors", _deleted, remove=_restored, query={"deleted": "true"}),
        Listing(f"{T}/policy-warnings", _forbidden, lambda item: item["monitor"], _no_monitor),
        Listing(f"{T}/bindings", _binding, lambda item: item["namespace"], _no_binding),
        Listing(f"{T}/freezes", _freeze, lambda item: f"{item['kind']} {item['name']}", _no_freeze, begin=_frozen_all),
        # Revoked ones stay in the list.
        Listing(f"{T}/keys", _key(f"{T}/keys", role="tenant-viewer"), **keys),
        Listing("/v1/keys", _key("/v1/keys"), **keys),
        Listing(f"{T}/audit", _event, **events),
        Listing("/v1/audit", _event, **events, query={"tenant": "{tenant}"}),
        Listing(
            f"{T}/monitors/{{monitor}}/samples",
            sampled(url),
            lambda item: str(item["partitions"][0]["lag"]),
            begin=_measured,
        ),
    )
    return {one.path + "".join(f"?{name}" for name in one.query or ()): one for one in found}
