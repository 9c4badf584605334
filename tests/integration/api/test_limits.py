"""Limits over HTTP: a key that asks too often, an address that fails too often, and who goes on beside them."""

from __future__ import annotations

import httpx
import psycopg
import pytest

from lagscale.rate_limit import RateLimiter
from services.api.auth.rate_limits import AuthRateLimiter
from tests.integration.api.conftest import Shop
from tests.support.api_server import ADMIN, bearer, serving

pytestmark = pytest.mark.integration


class Clock:
    """It stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def is_too_much(answer: httpx.Response, retry_after: str) -> bool:
    body = answer.json()
    assert answer.status_code == 429, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert (body["type"], body["title"]) == (
        "urn:lagscale:problem:rate-limit-exceeded", "Rate limit exceeded.",
    )  # fmt: skip
    assert "retry after" in body["detail"]
    return answer.headers["retry-after"] == retry_after


async def test_a_key_that_asks_too_often_waits_and_others_go_on(shop: Shop, shared_url: str, clock: Clock) -> None:
    hasty, calm = await shop.key("tenant-viewer"), await shop.key("tenant-viewer")
    async with serving(shared_url, guard=AuthRateLimiter(RateLimiter(0.25, 3, clock=clock))) as api:
        statuses = [(await api.get(shop.path, headers=hasty)).status_code for _ in range(3)]
        assert statuses == [200] * 3
        assert is_too_much(await api.get(shop.path, headers=hasty), "4")
        for headers in (calm, bearer(ADMIN)):
            assert (await api.get(shop.path, headers=headers)).status_code == 200
        # Who only knows its prefix cannot use up its rate.
        clock.now += 4
        wrong = hasty["Authorization"][:-1] + ("a" if hasty["Authorization"][-1] != "a" else "b")
        assert (await api.get(shop.path, headers={"Authorization": wrong})).status_code == 401
        assert (await api.get(shop.path, headers=hasty)).status_code == 200


async def test_an_address_that_fails_too_often_waits_and_asks_the_store_nothing(
    shop: Shop, shared_url: str, clock: Clock
) -> None:
    known, fresh = await shop.key("tenant-viewer"), await shop.key("tenant-viewer")
    guard = AuthRateLimiter(None, RateLimiter(1 / 30, 2, clock=clock))
    async with serving(shared_url, guard=guard) as api:
        assert (await api.get(shop.path, headers=known)).status_code == 200
        for number in range(2):
            assert (await api.get(shop.path, headers=bearer(f"lsk_000000000000_wrong{number}"))).status_code == 401
        assert is_too_much(await api.get(shop.path, headers=bearer("lsk_000000000000_wrong9")), "30")
        # Behind one address with the stranger: who proved itself goes on, who comes anew waits.
        assert (await api.get(shop.path, headers=known)).status_code == 200
        assert is_too_much(await api.get(shop.path, headers=fresh), "30")
        with psycopg.connect(shared_url) as connection:
            used = connection.execute(
                "select last_used_at from api_key where prefix = %s", (fresh["Authorization"].split("_")[1],)
            ).fetchone()
        assert used == (None,)
        clock.now += 30
        assert (await api.get(shop.path, headers=fresh)).status_code == 200


async def test_the_probes_are_never_limited(shared_url: str, clock: Clock) -> None:
    async with serving(
        shared_url, guard=AuthRateLimiter(RateLimiter(0.1, 1, clock=clock), RateLimiter(0.1, 1, clock=clock))
    ) as api:
        for _ in range(3):
            await api.get("/v1/tenants", headers=bearer("wrong"))
            assert [(await api.get(path)).status_code for path in ("/livez", "/readyz", "/metrics")] == [200] * 3
