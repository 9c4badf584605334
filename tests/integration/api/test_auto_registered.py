"""What ScaledObjects register: listed with who asked, bounded, adopted by a PUT, and gone when nobody asks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.quotas import Quota
from lagscale.domain.tenancy import build_inline_name, compute_content_hash
from lagscale.domain.topics import TopicScope
from lagscale.errors import QuotaExceeded, StoreUnavailable
from lagscale.store.connection import open_pool
from lagscale.store.registrations.load import ROLE, InlineMonitor, PostgresRegistrations, TenantEntry
from lagscale.store.registry.monitor_spec import MonitorSpec
from services.scaler.triggers.directory import MonitorDirectory, ResolvedMonitor
from services.scaler.triggers.metadata import TriggerReader
from tests.integration.api.conftest import Shop, fresh
from tests.integration.api.test_monitor_life import age, listed, names, restore
from tests.integration.api.test_quotas import limit, measured, used
from tests.integration.api.test_registry import rows

pytestmark = pytest.mark.integration


class Keda:
    """Asks as the scaler does, with the registrations that the store has."""

    def __init__(self, store: PostgresRegistrations, shop: Shop, instance: str) -> None:
        self._store = store
        self._shop = shop
        self._instance = instance

    async def wanted(self, scaled_object: str = "worker", **metadata: str) -> ResolvedMonitor:
        trigger = {"cluster": "main", "consumerGroup": "readers", "topic": "orders", **metadata}
        reader = TriggerReader(1.0)
        directory = MonitorDirectory(await self._store.load(), reader)
        [entry] = directory.resolve(reader.read(trigger), self._instance, "prod", scaled_object).entries
        assert isinstance(entry, ResolvedMonitor)
        return entry

    async def ask(self, scaled_object: str = "worker", **metadata: str) -> str:
        """The name of the monitor that the trigger has then."""
        subject = await self.wanted(scaled_object, **metadata)
        if subject.inline is not None:
            await self._store.register(subject.inline)
        return subject.name


@pytest.fixture
async def store(shared_url: str) -> AsyncIterator[PostgresRegistrations]:
    pool = open_pool(shared_url, ROLE, 2, application="test")
    await pool.open(wait=True)
    yield PostgresRegistrations(pool)
    await pool.close()


@pytest.fixture
async def keda(shop: Shop, store: PostgresRegistrations) -> Keda:
    instance = fresh("keda")
    bound = await shop.api.post(f"{shop.path}/bindings", json={"instance": instance, "namespace": "prod"})
    assert bound.status_code == 201
    await rule(shop)
    return Keda(store, shop, instance)


async def rule(shop: Shop, **given: Any) -> None:
    answer = await shop.api.put(shop.path, json={"autoRegister": True, **given})
    assert answer.status_code == 200, answer.text


async def test_what_came_that_way_is_listed_with_who_asked(shop: Shop, keda: Keda) -> None:
    await shop.monitor("by-hand")
    name = await keda.ask("worker-\u0000\u202eobject", lagThreshold="5")
    [item] = await listed(shop, autoRegistered="true")
    assert item["name"] == name
    assert item["registeredBy"]["namespace"] == "prod"
    assert item["registeredBy"]["scaledObject"] == "worker-object"
    assert item["lastRequestedAt"] is not None
    assert await names(shop, autoRegistered="false") == ["by-hand"]


async def test_defaults_of_the_tenant_are_in_force_and_follow_its_changes(shop: Shop, keda: Keda) -> None:
    await rule(shop, policyDefaults={"holdSeconds": 60, "isolationLevel": "read_committed"})
    name = await keda.ask(lagThreshold="5")
    [item] = await listed(shop)
    assert (item["policy"], item["inheritedPolicy"]) == (
        {"lagThreshold": "5"}, {"holdSeconds": "60", "isolationLevel": "read_committed"},
    )  # fmt: skip
    found = await keda.wanted(lagThreshold="5")
    assert (found.monitor_id is not None, found.policy.hold_ms, found.name) == (True, 60_000, name)
    await rule(shop, policyDefaults={"holdSeconds": 30})
    found = await keda.wanted(lagThreshold="5")
    # The same monitor under the same name, by the new defaults; it stays one that expires.
    assert (found.monitor_id is not None, found.policy.hold_ms, found.name) == (True, 30_000, name)
    assert [item["autoRegistered"] for item in await listed(shop)] == [True]


async def test_a_scaler_that_does_not_know_the_newest_rules_registers_nothing(
    shop: Shop, keda: Keda, store: PostgresRegistrations
) -> None:
    subject = await keda.wanted()
    assert subject.inline is not None
    await rule(shop, policyDefaults={"holdSeconds": 60})
    with pytest.raises(StoreUnavailable, match="rules have just changed"):
        await store.register(subject.inline)
    assert await names(shop) == []
    await keda.ask()
    assert len(await names(shop)) == 1


async def test_their_number_has_a_limit_of_its_own(shop: Shop, keda: Keda) -> None:
    await rule(shop, maxAutoMonitors=2)
    await shop.monitor("by-hand")
    first = await keda.ask(topic="a")
    await keda.ask(topic="b")
    with pytest.raises(QuotaExceeded, match="maxAutoMonitors"):
        await keda.ask(topic="c")
    assert await keda.ask(topic="a") == first
    adopted = await shop.monitor(first, topics=["a"])
    assert adopted.json()["autoRegistered"] is False
    await keda.ask(topic="c")
    assert len(await names(shop)) == 4


async def test_a_put_of_the_same_adopts_it_and_the_trigger_still_finds_it(
    shop: Shop, keda: Keda, shared_url: str
) -> None:
    name = await keda.ask(lagThreshold="5")
    adopted = await shop.monitor(name, policy={"lagThreshold": 5})
    assert (adopted.status_code, adopted.json()["autoRegistered"], adopted.json()["version"]) == (200, False, 2)
    again = await shop.monitor(name, policy={"lagThreshold": 5})
    assert again.json() == adopted.json()
    assert (await keda.wanted(lagThreshold="5")).monitor_id is not None
    age(shared_url, shop, last_asked_at="400 days", created_at="400 days")
    assert await names(shop) == [name]


@pytest.mark.parametrize(("days", "stays", "goes"), [(None, "6 days", "8 days"), (30, "29 days", "31 days")])
async def test_one_that_nobody_asks_for_goes_and_can_come_back(
    *, shop: Shop, keda: Keda, shared_url: str, days: int | None, stays: str, goes: str
) -> None:
    await rule(shop, **({} if days is None else {"autoExpiryDays": days}))
    await shop.monitor("by-hand")
    name = await keda.ask(lagThreshold="5")
    age(shared_url, shop, last_asked_at=stays, created_at="400 days")
    assert name in await names(shop)
    version = rows(shared_url, "select version from registry_change")
    age(shared_url, shop, last_asked_at=goes)
    assert await names(shop) == ["by-hand"]
    assert rows(shared_url, "select version from registry_change") != version
    spans = rows(
        shared_url,
        "select s.until is not null as ended, (select count(*) from monitor_target x where x.monitor_id = m.id) as links "
        "from monitor m join monitor_target_span s on s.monitor_id = m.id join tenant t on t.id = m.tenant_id "
        "where t.name = %s and m.name = %s",
        shop.name,
        name,
    )
    assert spans == [{"ended": True, "links": 0}]
    audited = rows(
        shared_url,
        "select a.actor, a.object from audit_event a join tenant t on t.id = a.tenant_id "
        "where t.name = %s and a.action = 'monitor.expire'",
        shop.name,
    )
    assert audited == [{"actor": "housekeeping", "object": f"monitor/{name}"}]
    assert [item["autoRegistered"] for item in await listed(shop, deleted="true")] == [True]
    back = await restore(shop, name)
    assert (back.json()["autoRegistered"], back.json()["policy"]) == (False, {"lagThreshold": "5"})


async def test_housekeeping_that_finds_nothing_is_no_change_for_scalers(shop: Shop, shared_url: str) -> None:
    await shop.monitor("by-hand")
    age(shared_url, shop)
    version = rows(shared_url, "select version from registry_change")
    age(shared_url, shop)
    assert rows(shared_url, "select version from registry_change") == version


async def test_who_asked_is_unknown_where_an_older_scaler_registered(
    shop: Shop, keda: Keda, store: PostgresRegistrations, shared_url: str
) -> None:
    entry: TenantEntry = next(one for one in (await store.load()).tenants if one.name == shop.name)
    digest = compute_content_hash("main", "old", ["t"], {})
    await store.register(
        InlineMonitor(
            entry.tenant_id,
            MonitorSpec(
                build_inline_name("old", ["t"], digest), "main", "old", TopicScope(("t",)), {}, policy=parse_policy({})
            ),
        )
    )
    [item] = await listed(shop, autoRegistered="true")
    assert item["registeredBy"] is None
    with psycopg.connect(shared_url) as connection:
        found = connection.execute("select registered_by from monitor where name = %s", (item["name"],)).fetchone()
    assert found == (None,)


async def accepts(keda: Keda, shop: Shop, quota: Quota) -> tuple[bool, bool]:
    """Whether the scaler, and then the API, accept one monitor more; the scaler's is deleted in between."""
    listed_topic = quota is not Quota.PATTERNS
    try:
        name = await keda.ask(
            consumerGroup="new", **({"topic": "new"} if listed_topic else {"topic": "", "topicPattern": "new"})
        )
    except QuotaExceeded as error:
        by_scaler = error.facts["quota"] != quota.value
    else:
        by_scaler = (await shop.api.delete(f"{shop.path}/monitors/{name}")).status_code == 204
    topics = {"topics": ["new"]} if listed_topic else {"topics": None, "topicPattern": "new"}
    answer = await shop.monitor("new", consumerGroup="new", **topics)
    return by_scaler, answer.status_code == 201


@pytest.mark.parametrize("quota", [Quota.MONITORS, Quota.PATTERNS, Quota.PARTITIONS])
@pytest.mark.parametrize("room", [0, 1])
async def test_scaler_and_api_count_the_use_of_a_quota_alike(
    shop: Shop, keda: Keda, shared_url: str, *, quota: Quota, room: int
) -> None:
    await shop.monitor("listed", topics=["orders", "refunds"])
    await shop.monitor("deleted", topics=["gone"])
    await shop.monitor("matched", consumerGroup="all", topics=None, topicPattern="logs")
    await keda.ask(topic="inline")
    measured(shared_url, shop, 7)
    with psycopg.connect(shared_url, autocommit=True) as connection:
        connection.execute(
            "update target_state s set code = 'over_quota' from lag_target t "
            "where t.id = s.target_id and t.topic = 'refunds' and t.tenant_id = (select id from tenant where name = %s)",
            [shop.name],
        )
    assert (await shop.api.delete(f"{shop.path}/monitors/deleted")).status_code == 204
    usage = {counted: (await used(shop))[counted.value]["used"] for counted in (quota, Quota.PARTITIONS)}
    assert usage[Quota.PARTITIONS] == 14
    await limit(shop, **{quota.value: usage[quota] + room})
    assert await accepts(keda, shop, quota) == (bool(room), bool(room))
