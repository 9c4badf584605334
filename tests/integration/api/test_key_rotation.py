"""Keys are rotated with an overlap, and what is revoked is refused by all replicas at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg
import pytest

from tests.integration.api.conftest import Shop, fresh
from tests.support.api_server import ADMIN, bearer, serving

pytestmark = pytest.mark.integration


async def made(shop: Shop, **given: Any) -> dict[str, Any]:
    answer = await shop.api.post(f"{shop.path}/keys", json={"name": "ci", "role": "tenant-viewer", **given})
    assert answer.status_code == 201, answer.text
    key: dict[str, Any] = answer.json()
    return key


async def rotated(shop: Shop, prefix: str, **given: Any) -> httpx.Response:
    return await shop.api.post(f"{shop.path}/keys/{prefix}/rotate", json=given)


async def status(shop: Shop, key: str) -> int:
    return (await shop.api.get(shop.path, headers=bearer(key))).status_code


async def listed(shop: Shop, prefix: str) -> dict[str, Any]:
    items = (await shop.api.get(f"{shop.path}/keys")).json()["items"]
    return next(item for item in items if item["prefix"] == prefix)


def outlived(url: str, prefix: str) -> None:
    """The key's time is over."""
    with psycopg.connect(url) as connection:
        ended = connection.execute(
            "update api_key set expires_at = now() - interval '1 second' where prefix = %s", (prefix,)
        )
        assert ended.rowcount == 1


async def test_both_are_valid_until_the_overlap_ends(shop: Shop, shared_url: str) -> None:
    old = await made(shop)
    answer = await rotated(shop, old["prefix"], overlapSeconds=3600)
    assert answer.status_code == 201
    new = answer.json()
    assert (new["name"], new["role"], new["expiresAt"]) == ("ci", "tenant-viewer", None)
    assert new["key"] != old["key"]
    assert [await status(shop, key["key"]) for key in (old, new)] == [200, 200]
    shown = await listed(shop, old["prefix"])
    assert shown["replacedBy"] == new["prefix"]
    left = datetime.fromisoformat(shown["expiresAt"]) - datetime.now(UTC)
    assert timedelta(minutes=59) < left <= timedelta(hours=1, seconds=5)
    outlived(shared_url, old["prefix"])
    assert [await status(shop, key["key"]) for key in (old, new)] == [401, 200]


async def test_no_overlap_ends_the_old_key_at_once(shop: Shop) -> None:
    old = await made(shop)
    new = (await rotated(shop, old["prefix"], overlapSeconds=0)).json()
    assert [await status(shop, key["key"]) for key in (old, new)] == [401, 200]


async def test_an_overlap_lengthens_no_life(shop: Shop) -> None:
    soon = datetime.now(UTC) + timedelta(minutes=10)
    old = await made(shop, expiresAt=soon.isoformat())
    new = (await rotated(shop, old["prefix"], overlapSeconds=86_400)).json()
    shown = await listed(shop, old["prefix"])
    assert datetime.fromisoformat(shown["expiresAt"]) == soon
    # The successor lives as long as the old key was made for.
    life = datetime.fromisoformat(new["expiresAt"]) - datetime.fromisoformat(new["createdAt"])
    assert abs(life - timedelta(minutes=10)) < timedelta(seconds=30)
    later = soon + timedelta(days=30)
    further = (await rotated(shop, new["prefix"], expiresAt=later.isoformat())).json()
    assert datetime.fromisoformat(further["expiresAt"]) == later


async def test_what_needs_no_overlap_is_not_rotated(shop: Shop, shared_url: str) -> None:
    replaced, revoked, expired = [await made(shop) for _ in range(3)]
    assert (await rotated(shop, replaced["prefix"])).status_code == 201
    await shop.api.delete(f"{shop.path}/keys/{revoked['prefix']}")
    outlived(shared_url, expired["prefix"])
    before = (await shop.api.get(f"{shop.path}/keys")).json()
    for key, word in ((replaced, "replaced by"), (revoked, "revoked"), (expired, "expired")):
        answer = await rotated(shop, key["prefix"])
        assert (answer.status_code, word in answer.json()["detail"]) == (409, True)
    assert (await shop.api.get(f"{shop.path}/keys")).json() == before


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"overlapSeconds": -1}, "overlapSeconds"),
        ({"overlapSeconds": 30 * 86_400 + 1}, "overlapSeconds"),
        ({"expiresAt": "2001-01-01T00:00:00Z"}, "expiresAt"),
        ({"role": "tenant-admin"}, "role"),
    ],
)
async def test_faults_name_their_field(shop: Shop, given: dict[str, Any], field: str) -> None:
    old = await made(shop)
    answer = await rotated(shop, old["prefix"], **given)
    assert answer.status_code == 422
    assert [fault["field"] for fault in answer.json()["errors"]] == [field]
    assert (await listed(shop, old["prefix"]))["replacedBy"] is None


async def test_a_key_rotates_itself_and_no_key_of_another_tenant(shop: Shop, other: Shop) -> None:
    mine = await made(shop, role="tenant-admin")
    theirs = await made(other)
    path = f"{shop.path}/keys/{mine['prefix']}/rotate"
    own = await shop.api.post(path, json={}, headers=bearer(mine["key"]))
    assert own.status_code == 201
    for prefix in (theirs["prefix"], "0" * 12):
        answer = await shop.api.post(f"{shop.path}/keys/{prefix}/rotate", json={}, headers=bearer(own.json()["key"]))
        assert answer.status_code == 404
    assert (await listed(other, theirs["prefix"]))["replacedBy"] is None


async def test_a_platform_key_is_rotated_by_the_platform(api: httpx.AsyncClient, shop: Shop) -> None:
    old = (await api.post("/v1/keys", json={"name": fresh("team")})).json()
    path = f"/v1/keys/{old['prefix']}/rotate"
    of_tenant = await made(shop, role="tenant-admin")
    assert (await api.post(path, json={}, headers=bearer(of_tenant["key"]))).status_code == 403
    assert (await api.post(f"/v1/keys/{of_tenant['prefix']}/rotate", json={})).status_code == 404
    new = (await api.post(path, json={})).json()
    assert new["role"] == "platform-admin"
    assert (await api.get("/v1/keys", headers=bearer(new["key"]))).status_code == 200


async def test_all_replicas_refuse_what_one_revoked_at_once(shop: Shop, shared_url: str) -> None:
    key = await made(shop)
    async with serving(shared_url) as one, serving(shared_url) as another:
        for _ in range(3):
            # Long enough for a memory of valid keys to be warm, if there were one.
            assert [(await at.get(shop.path, headers=bearer(key["key"]))).status_code for at in (one, another)] == [
                200,
                200,
            ]
        revoked = await one.delete(f"{shop.path}/keys/{key['prefix']}", headers=bearer(ADMIN))
        assert revoked.status_code == 204
        assert [(await at.get(shop.path, headers=bearer(key["key"]))).status_code for at in (another, one)] == [
            401,
            401,
        ]
