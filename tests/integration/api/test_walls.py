"""Another tenant's object is answered like one that does not exist: same statements, same bytes."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import psycopg
import pytest

from tests.integration.api.conftest import Shop, fresh
from tests.integration.api.writing_routes import WRITINGS
from tests.support.registry_statements import statements
from tests.support.stored_rounds import write

pytestmark = pytest.mark.integration

MONITOR = {"cluster": "main", "consumerGroup": "readers", "topics": ["orders"]}
CLUSTER = {"bootstrapServers": ["k:1"]}
#: Of routes that ask by POST and change nothing; those that change something have their examples already.
BODIES: dict[str, Any] = {"POST /v1/tenants/{tenant}/monitors/validate": MONITOR}
#: What makes this test ask for a name that is there, in any tenant that has the usual things.
USUAL = {"cluster": "main", "monitor": "orders", "prefix": "0" * 12, "key": "0" * 12, "tenant": "shop"}
#: Where further questions hide behind a parameter.
QUERIES = {
    "GET /v1/tenants/{tenant}/monitors": ("?deleted=true", "?failing=true&cluster=main"),
    "POST /v1/tenants/{tenant}/monitors/bulk": ("?dryRun=true",),
    "GET /v1/tenants/{tenant}/audit": ("?object=monitor/orders",),
}


async def routes(api: httpx.AsyncClient, *, naming: str = "{tenant}") -> list[tuple[str, str, str, Any]]:
    """(method, path, query, body) of every route whose path has that in it, as the OpenAPI document lists them."""
    document = (await api.get("/openapi.json")).json()
    examples = {writing.route: writing for writing in WRITINGS}
    found = []
    for path, methods in document["paths"].items():
        for route in (f"{method.upper()} {path}" for method in methods if naming in path):
            example = examples.get(route)
            body = BODIES.get(route) if example is None else filled(example.body, USUAL)
            first = "" if example is None else filled(example.query, USUAL)
            found += [(*route.split(" "), query, body) for query in (first, *QUERIES.get(route, ()))]
    return found


def filled(value: Any, names: dict[str, str]) -> Any:
    """The value with names in place of `{name}`."""
    text = json.dumps(value)
    for name, given in names.items():
        text = text.replace(f"{{{name}}}", given)
    return json.loads(text)


async def ask(
    api: httpx.AsyncClient, method: str, path: str, body: Any, headers: dict[str, str]
) -> tuple[tuple[int, bytes, list[tuple[str, str]]], list[str]]:
    with statements() as seen:
        answer = await api.request(method, path, json=body, headers=headers)
    return (answer.status_code, answer.content, sorted(answer.headers.items())), seen


@pytest.mark.parametrize("role", ["tenant-admin", "tenant-viewer"])
async def test_another_tenant_is_like_none_on_every_route(shop: Shop, other: Shop, role: str) -> None:
    await other.monitor("orders")
    key = await shop.key(role)
    await shop.api.get("/v1/tenants", headers=key)  # The first use of a key writes when that was.
    asked = await routes(shop.api)
    assert len(asked) > 40
    for method, path, query, body in asked:
        where = f"{method} {path}{query}"
        both = [filled(path, USUAL | {"tenant": tenant}) + query for tenant in (other.name, fresh("none"))]
        (foreign, of_foreign), (missing, of_missing) = [await ask(shop.api, method, one, body, key) for one in both]
        assert foreign == missing, where
        assert foreign[0] in {403, 404}, f"{where}: {foreign}"
        assert of_foreign == of_missing, where
        assert of_foreign, f"{where}: nothing was listened to"


def makes(method: str, path: str, parameter: str) -> bool:
    """Whether the route makes what that parameter names."""
    return method == "PUT" and path.endswith(f"{{{parameter}}}")


@pytest.mark.parametrize("parameter", ["cluster", "monitor", "prefix"])
async def test_another_tenants_object_is_like_none_on_every_route(shop: Shop, other: Shop, parameter: str) -> None:
    await shop.monitor("orders")
    theirs = fresh("theirs")
    await other.api.put(f"{other.path}/clusters/{theirs}", json=CLUSTER)
    await other.monitor(theirs)
    made = await other.api.post(f"{other.path}/keys", json={"name": "x", "role": "tenant-viewer"})
    names = (made.json()["prefix"], "0" * 12) if parameter == "prefix" else (theirs, fresh("none"))
    key = await shop.key("tenant-admin")
    await shop.api.get("/v1/tenants", headers=key)
    # What can make the object comes last: from then on the tenant has one of its own under that name.
    asked = await routes(shop.api, naming=f"{{tenant}}/{parameter}s/{{{parameter}}}".replace("prefixs", "keys"))
    for method, path, query, body in sorted(asked, key=lambda one: makes(one[0], one[1], parameter)):
        where = f"{method} {path}{query}"
        both = [filled(path, {"tenant": shop.name, parameter: name}) + query for name in names]
        (foreign, of_foreign), (missing, of_missing) = [await ask(shop.api, method, one, body, key) for one in both]
        assert of_foreign == of_missing, where
        assert foreign[0] == missing[0], where
        if makes(method, path, parameter):
            assert foreign[0] == 201, f"{where}: the name is taken by another tenant's object"
        else:
            assert foreign == missing, where
            assert foreign[0] == 404, f"{where}: {foreign}"


async def test_no_conflict_tells_what_another_tenant_has(shop: Shop, other: Shop) -> None:
    theirs = fresh("theirs")
    bound = await other.api.post(f"{other.path}/bindings", json={"namespace": theirs})
    assert bound.status_code == 201, bound.text
    key = await shop.key("tenant-admin")
    await shop.api.get("/v1/tenants", headers=key)
    for method, path, body, taken in (
        ("POST", f"{shop.path}/bindings", {"namespace": "{name}"}, theirs),
        ("POST", "/v1/tenants", {"name": "{name}"}, other.name),
        ("PUT", "/v1/tenants/{name}", {}, other.name),
    ):
        (foreign, of_foreign), (missing, of_missing) = [
            await ask(shop.api, method, filled(path, {"name": name}), filled(body, {"name": name}), key)
            for name in (taken, fresh("none"))
        ]
        assert foreign == missing, path
        assert foreign[0] == 403, f"{path}: {foreign}"
        assert of_foreign == of_missing, path


async def test_a_path_names_things_and_counts_none(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders")
    with psycopg.connect(shared_url) as connection:
        row = connection.execute(
            "select t.id, c.id, m.id from tenant t join cluster c on c.tenant_id = t.id "
            "join monitor m on m.tenant_id = t.id where t.name = %s", (shop.name,)
        ).fetchone()  # fmt: skip
    assert row is not None
    tenant, cluster, monitor = row
    document = (await shop.api.get("/openapi.json")).json()
    parameters = {name for path in document["paths"] for name in re.findall(r"\{(\w+)\}", path)}
    assert parameters == {"tenant", "cluster", "monitor", "prefix"}, "a name, or something random; never a number"
    for path in (f"/v1/tenants/{tenant}", f"{shop.path}/clusters/{cluster}", f"{shop.path}/monitors/{monitor}"):
        answer = await shop.api.get(path)
        assert answer.status_code == 404, path
    numbered = [
        f"{name}.{field}"
        for name, schema in document["components"]["schemas"].items()
        for field, told in schema.get("properties", {}).items()
        if re.search(r"^ids?$|Ids?$", field) and "string" not in json.dumps(told)
    ]
    assert numbered == [], "a number of the store is shown"


async def test_the_same_names_are_free_in_every_tenant(shop: Shop, other: Shop) -> None:
    assert (await shop.monitor("orders")).status_code == 201
    assert (await other.monitor("orders")).status_code == 201
    await other.api.delete(f"{other.path}/monitors/orders")
    assert (await shop.api.get(f"{shop.path}/monitors/orders")).status_code == 200


async def test_another_tenants_cluster_cannot_be_measured(shop: Shop, other: Shop) -> None:
    theirs = fresh("theirs")
    await other.api.put(f"{other.path}/clusters/{theirs}", json=CLUSTER)
    foreign = await shop.monitor("orders", cluster=theirs)
    missing = await shop.monitor("orders", cluster=fresh("none"))
    assert (foreign.status_code, foreign.content) == (missing.status_code, missing.content) == (422, missing.content)


async def test_a_tenants_key_sees_its_own_tenant_only(shop: Shop, other: Shop, shared_url: str) -> None:
    for each in (shop, other):
        await each.monitor("orders", policy={"samplingInterval": 10})
    write(shared_url, other.name, "orders", [(5, (other_lag := 4711,))])
    key = await shop.key("tenant-viewer")
    listing = (await shop.api.get("/v1/tenants", headers=key)).json()
    assert [item["name"] for item in listing["items"]] == [shop.name]
    mine = await shop.api.get(f"{shop.path}/monitors/orders/samples", headers=key)
    assert mine.json()["items"] == []
    assert str(other_lag) in (await other.api.get(f"{other.path}/monitors/orders/samples")).text
    assert (await shop.api.get(f"{shop.path}/monitors/orders/verdict", headers=key)).json()["reason"] == "no_data"


async def test_a_role_may_do_its_part(shop: Shop) -> None:
    for role, method, path, status in (
        ("tenant-viewer", "GET", "/monitors", 200),
        ("tenant-viewer", "PUT", "/monitors/orders", 403),
        ("tenant-viewer", "DELETE", "/monitors/orders", 403),
        ("tenant-viewer", "GET", "/keys", 403),
        ("tenant-admin", "PUT", "/monitors/orders", 201),
        ("tenant-admin", "GET", "/keys", 200),
        ("tenant-admin", "PUT", "", 403),
        ("tenant-admin", "DELETE", "", 403),
        ("tenant-admin", "POST", "/bindings", 403),
    ):
        key = await shop.key(role)
        body = {"namespace": "prod"} if "bindings" in path else MONITOR if "monitors" in path else {}
        given = body if method in {"PUT", "POST"} else None
        answer = await shop.api.request(method, shop.path + path, json=given, headers=key)
        assert answer.status_code == status, f"{role} {method} {path}: {answer.text}"


async def test_only_the_platform_makes_tenants_and_platform_keys(shop: Shop) -> None:
    key = await shop.key("tenant-admin")
    assert (await shop.api.post("/v1/tenants", json={"name": fresh("t")}, headers=key)).status_code == 403
    assert (await shop.api.post("/v1/keys", json={"name": "x"}, headers=key)).status_code == 403
    assert (await shop.api.get("/v1/keys", headers=key)).status_code == 403
