"""The store away or silent: every request ends with a 503, and all is well again by itself."""

from __future__ import annotations

import asyncio

import pytest

from devstack.database import Database
from tests.integration.api.conftest import Shop

pytestmark = pytest.mark.integration


async def settled(shop: Shop) -> None:
    async with asyncio.timeout(60):
        # Each request takes its time while the store is away, so asking again at once is no rush.
        while (await shop.api.get(f"{shop.path}/monitors/orders/verdict")).status_code != 200:
            continue


async def test_a_silent_store_ends_requests_instead_of_hanging_them(shop: Shop, database: Database) -> None:
    await shop.monitor("orders")
    await settled(shop)
    database.pause()
    try:
        async with asyncio.timeout(60):
            answers = await asyncio.gather(
                shop.api.get(shop.path),
                shop.api.get(f"{shop.path}/monitors/orders/verdict"),
                shop.api.get("/readyz"),
                shop.monitor("orders"),
            )
    finally:
        database.resume()
    assert [answer.status_code for answer in answers] == [503, 503, 503, 503]
    assert answers[0].headers["retry-after"] == "1"
    assert answers[0].json()["type"].startswith("urn:lagscale:problem:store-")
    await settled(shop)
    assert (await shop.api.get("/readyz")).status_code == 200


async def test_liveness_does_not_need_the_store(shop: Shop, database: Database) -> None:
    database.pause()
    try:
        async with asyncio.timeout(30):
            assert (await shop.api.get("/livez")).status_code == 200
    finally:
        database.resume()
