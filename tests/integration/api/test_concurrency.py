"""Two who change one object: tags and conditions of requests, and PUTs of the same that change nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from tests.integration.api.conftest import Shop, fresh
from tests.integration.api.test_registry import fields, rows

pytestmark = pytest.mark.integration

KINDS = ["tenant", "cluster", "monitor"]
BODIES: dict[str, list[dict[str, Any]]] = {
    "tenant": [{"displayName": "one"}, {"displayName": "two"}],
    "cluster": [{"bootstrapServers": ["one:1"]}, {"bootstrapServers": ["two:1"]}],
    "monitor": [
        {"cluster": "main", "consumerGroup": "one", "topics": ["t"]},
        {"cluster": "main", "consumerGroup": "two", "topics": ["t"]},
    ],
}


def path_of(shop: Shop, kind: str) -> str:
    name = fresh("twin")
    return f"/v1/tenants/{name}" if kind == "tenant" else f"{shop.path}/{kind}s/{name}"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_change_of_what_another_changed_is_refused_with_412(shop: Shop, kind: str) -> None:
    path, (one, two) = path_of(shop, kind), BODIES[kind]
    tag = (await shop.api.put(path, json=one)).headers["etag"]
    assert (await shop.api.get(path)).headers["etag"] == tag == '"1"'
    assert (await shop.api.put(path, json=two, headers={"If-Match": tag})).headers["etag"] == '"2"'
    for refused in (
        await shop.api.put(path, json=one, headers={"If-Match": tag}),
        await shop.api.delete(path, headers={"If-Match": tag}),
        await shop.api.put(path, json=two, headers={"If-None-Match": "*"}),
    ):
        assert (refused.status_code, refused.json()["type"]) == (412, "urn:lagscale:problem:precondition-failed")
    assert (await shop.api.get(path)).headers["etag"] == '"2"'
    assert (await shop.api.put(path, json=one, headers={"If-Match": '"7", "2"'})).headers["etag"] == '"3"'
    assert (await shop.api.put(path, json=two, headers={"If-Match": "*"})).headers["etag"] == '"4"'
    assert (await shop.api.delete(path, headers={"If-Match": '"4"'})).status_code == 204


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_not_there_is_only_made_by_who_does_not_ask_for_it(shop: Shop, kind: str) -> None:
    path, (one, _) = path_of(shop, kind), BODIES[kind]
    for asked in ('"1"', "*"):
        assert (await shop.api.put(path, json=one, headers={"If-Match": asked})).status_code == 412
        assert (await shop.api.delete(path, headers={"If-Match": asked})).status_code == 404
    assert (await shop.api.put(path, json=one, headers={"If-None-Match": "*"})).status_code == 201


@pytest.mark.parametrize(
    ("headers", "field"),
    [
        ({"If-Match": "yesterday"}, "If-Match"),
        ({"If-Match": '"1'}, "If-Match"),
        ({"If-Match": '"1",'}, "If-Match"),
        ({"If-Match": '"12345678901"'}, "If-Match"),
        ({"If-Match": 'W/"1"'}, "If-Match"),
        ({"If-None-Match": '"1"'}, "If-None-Match"),
        ({"If-Match": '"1"', "If-None-Match": "*"}, "If-None-Match"),
    ],
)
async def test_a_tag_that_is_none_is_a_fault_with_its_field(shop: Shop, headers: dict[str, str], field: str) -> None:
    path = f"{shop.path}/monitors/orders"
    assert fields(await shop.api.put(path, json=BODIES["monitor"][0], headers=headers)) == {field}
    assert fields(await shop.api.delete(path, headers=headers)) == {field}
    assert (await shop.api.get(path)).status_code == 404


async def test_a_tenant_that_is_known_is_not_sent_again(shop: Shop) -> None:
    tag = (await shop.api.get(shop.path)).headers["etag"]
    for known in (tag, f"W/{tag}", f'"77", {tag}'):
        same = await shop.api.get(shop.path, headers={"If-None-Match": known})
        assert (same.status_code, same.headers["etag"], same.content) == (304, tag, b"")
    await shop.api.put(shop.path, json={"displayName": "another"})
    for known in (tag, "nonsense", ""):
        assert (await shop.api.get(shop.path, headers={"If-None-Match": known})).status_code == 200


@pytest.mark.parametrize("kind", KINDS)
async def test_of_two_who_change_one_version_one_wins(shop: Shop, kind: str) -> None:
    path, (one, two) = path_of(shop, kind), BODIES[kind]
    await shop.api.put(path, json=one)
    put = [shop.api.put(path, json=two | _more(kind, number), headers={"If-Match": '"1"'}) for number in range(4)]
    assert sorted(answer.status_code for answer in await asyncio.gather(*put)) == [200, 412, 412, 412]
    assert (await shop.api.get(path)).headers["etag"] == '"2"'


def _more(kind: str, number: int) -> dict[str, Any]:
    """What makes the bodies of several writers differ."""
    if kind == "tenant":
        return {"displayName": f"writer {number}"}
    return {"bootstrapServers": [f"k:{number + 1}"]} if kind == "cluster" else {"consumerGroup": f"g{number}"}


async def test_the_same_monitor_put_again_and_at_once_leaves_no_trace(shop: Shop, shared_url: str) -> None:
    first = await shop.monitor("orders", policy={"lagThreshold": 5}, excludeTopics=[], topics=["a", "b"])
    before = _traces(shared_url)
    again = [shop.monitor("orders", policy={"lagThreshold": "5 "}, topics="a,b,a") for _ in range(4)]
    answers: list[httpx.Response] = list(await asyncio.gather(*again))
    assert [(answer.status_code, answer.json()) for answer in answers] == [(200, first.json())] * 4
    assert _traces(shared_url) == before


def _traces(url: str) -> list[dict[str, Any]]:
    return rows(
        url,
        "select (select version from registry_change) as version, (select count(*) from audit_event) as audited, "
        "(select count(*) from monitor_version) as versions",
    )
