"""The states of all groups, counted for the metrics, from rows as the scraper writes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest
from prometheus_client import REGISTRY

from lagscale.domain.group_status.rules import Status
from lagscale.errors import StoreUnavailable
from lagscale.store.connection import Pool, open_pool
from lagscale.store.registrations.load import PostgresRegistrations, Registrations
from lagscale.store.samples.read import RoundReader
from services.api.group_status.counts import StatusCounter, StatusCounts
from tests.integration.api.conftest import Shop
from tests.integration.api.test_states import CALM, POLICY, SLOW, STILL, state, store

pytestmark = pytest.mark.integration


class OfShops(PostgresRegistrations):
    """The registrations of some tenants, so that other tests' rows, which grow old meanwhile, do not count."""

    def __init__(self, pool: Pool, shops: Sequence[Shop]) -> None:
        super().__init__(pool)
        self._names = {shop.name for shop in shops}

    async def load(self) -> Registrations:
        found = await super().load()
        mine = {tenant.tenant_id for tenant in found.tenants if tenant.name in self._names}
        return replace(found, monitors=tuple(one for one in found.monitors if one.tenant_id in mine))


@pytest.fixture
async def pool(shared_url: str) -> AsyncIterator[Pool]:
    """Connections in the scaler's role."""
    pool = open_pool(shared_url, "lagscale_scaler", 1, application="test")
    await pool.open(wait=True)
    yield pool
    await pool.close()


@pytest.fixture
def counting(pool: Pool) -> StatusCounter:
    """The counting of every tenant."""
    return StatusCounter(PostgresRegistrations(pool), RoundReader(pool), seconds=60)


async def counted(pool: Pool, *shops: Shop) -> StatusCounts:
    return await StatusCounter(OfShops(pool, shops), RoundReader(pool), seconds=60).count()


async def test_states_are_counted_over_tenants(shop: Shop, other: Shop, pool: Pool, shared_url: str) -> None:
    await shop.monitor("orders", policy=POLICY)
    await shop.monitor("refunds", topics=["refunds"], policy=POLICY)
    await other.monitor("orders", topics=["orders", "returns"], policy=POLICY)
    await other.monitor("empty", topics=["nothing"], policy=POLICY)
    store(shared_url, shop, "orders", CALM, CALM, STILL)
    store(shared_url, shop, "refunds", CALM, CALM)
    store(shared_url, other, "orders", CALM, ago=100)
    store(shared_url, other, "returns", SLOW)
    counts = await counted(pool, shop, other)
    assert counts.groups == {Status.STALL: 1, Status.OK: 1, Status.WARN: 1, Status.UNKNOWN: 1}
    # The two refunds are told by their newest round alone.
    assert counts.partitions == {Status.OK: 4, Status.WARN: 1, Status.STALL: 1, Status.UNKNOWN: 1}
    assert counts.marks == {"stuck": 1, "hot": 1}


async def test_what_is_counted_is_what_the_api_tells(shop: Shop, pool: Pool, shared_url: str) -> None:
    for number, columns in enumerate([(CALM,), (SLOW, CALM), (STILL, SLOW, CALM), (CALM[:3], SLOW[:3])]):
        await shop.monitor(f"m{number}", topics=[f"t{number}"], policy=POLICY)
        store(shared_url, shop, f"t{number}", *columns)
    told = [await state(shop, f"m{number}") for number in range(4)]
    counts = await counted(pool, shop)
    assert counts.groups == Counter(Status(one["status"]) for one in told)
    for condition in Status:
        assert counts.partitions[condition] == sum(one["counts"].get(condition.value, 0) for one in told)


async def test_the_metrics_have_one_series_for_each_state(counting: StatusCounter) -> None:
    await counting.refresh()
    for family in ("lagscale_api_groups", "lagscale_api_partitions"):
        shown = [REGISTRY.get_sample_value(family, {"state": condition.value}) for condition in Status]
        assert None not in shown
    assert REGISTRY.get_sample_value("lagscale_api_marked_partitions", {"mark": "stuck"}) is not None


class Away(PostgresRegistrations):
    """Registrations of a store that does not answer."""

    def __init__(self) -> None:
        pass

    async def load(self) -> Registrations:
        raise StoreUnavailable


async def test_what_cannot_be_counted_is_shown_by_no_number(counting: StatusCounter, pool: Pool) -> None:
    await counting.refresh()
    await StatusCounter(Away(), RoundReader(pool), seconds=60).refresh()
    assert REGISTRY.get_sample_value("lagscale_api_groups", {"state": "ok"}) is None
    assert REGISTRY.get_sample_value("lagscale_api_partitions", {"state": "ok"}) is None
    await counting.refresh()
    assert REGISTRY.get_sample_value("lagscale_api_groups", {"state": "ok"}) is not None
