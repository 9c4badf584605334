"""Clients of a process: never more than the limit, the largest tenant gives one up first, tokens change without a gap."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from devstack.server import wait_until
from services.scraper.kafka import clients
from services.scraper.kafka.clients import Clients


class FakeClient:
    """Stands in for `KafkaCluster`: opened when the test allows it, and counted while it is open."""

    alive = 0
    let = threading.Event()

    def __init__(self, config: Mapping[str, Any], lifetime_seconds: float, rules: object) -> None:
        FakeClient.let.wait(10)
        if config.get("bad"):
            raise ValueError("refused")
        FakeClient.alive += 1
        self.lifetime_seconds, self.needs_replacement, self.busy_until = lifetime_seconds, False, 0.0
        self.has_lost_connections = False
        self.closed = False

    def close(self) -> None:
        assert not self.closed
        self.closed = True
        FakeClient.alive -= 1


@pytest.fixture(autouse=True)
def faked(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeClient.alive = 0
    FakeClient.let = threading.Event()
    FakeClient.let.set()
    monkeypatch.setattr(clients, "KafkaCluster", FakeClient)


class Pool(Clients):
    """Short words for the tests."""

    def use(self, cluster: int, tenant: int = 1, *, responsive: bool = True) -> FakeClient | None:
        client = self.get(cluster, 1, dict, tenant_id=tenant, responsive=responsive)
        assert client is None or isinstance(client, FakeClient)
        return client

    def used(self, cluster: int, tenant: int = 1, *, responsive: bool = True) -> FakeClient | None:
        client = self.use(cluster, tenant, responsive=responsive)
        if client is not None:
            self.release(client)
        return client

    def tenants(self) -> Counter[int]:
        return Counter(cached.tenant_id for cached in self._cached.values())


@pytest.fixture
def pool() -> Pool:
    return Pool(64)


def test_a_cluster_keeps_its_client() -> None:
    pool = Pool(8)
    assert pool.used(1) is pool.used(1)


def test_however_many_clusters_there_are_no_more_clients_live_than_the_limit() -> None:
    pool = Pool(8)
    for round_ in range(3):
        for cluster in range(100):
            assert pool.used(cluster, responsive=bool(round_)) is not None
            assert FakeClient.alive == len(pool) <= 8


def test_one_tenant_with_hundreds_takes_nobody_elses_client() -> None:
    pool = Pool(8)
    theirs = {tenant: pool.used(tenant, tenant) for tenant in (2, 3, 4)}
    for cluster in range(100, 300):
        pool.used(cluster, 1)
    assert {tenant: pool.used(tenant, tenant) for tenant in (2, 3, 4)} == theirs


def test_nor_does_it_while_all_of_its_own_are_in_use() -> None:
    pool = Pool(8)
    theirs = pool.used(900, 2)
    outcomes = [pool.use(cluster, 1) for cluster in range(20)]
    assert sum(outcome is not None for outcome in outcomes) == 7
    assert pool.used(900, 2) is theirs


def test_a_tenant_without_any_gets_one_of_the_greatest() -> None:
    pool = Pool(8)
    for cluster in range(8):
        pool.used(cluster, 1)
    assert pool.used(900, 2) is not None
    assert pool.tenants() == {1: 7, 2: 1}


def test_clusters_that_never_answered_give_way_and_have_a_share_left() -> None:
    pool = Pool(8)
    for cluster in range(8):
        pool.used(cluster, cluster)
    # Two of eight are theirs, also where everybody has one only; no third one.
    theirs = [pool.use(100 + n, 99, responsive=False) for n in range(3)]
    assert [one is not None for one in theirs] == [True, True, False]
    for one in theirs[:2]:
        pool.release(one)
    assert pool.use(200, 50) is not None
    assert sum(not cached.responsive for cached in pool._cached.values()) == 1


def test_a_client_in_use_is_never_closed() -> None:
    pool = Pool(8)
    mine = pool.use(1)
    for cluster in range(2, 50):
        pool.used(cluster)
    assert mine is not None
    assert not mine.closed
    pool.release(mine)
    for cluster in range(2, 50):
        pool.used(cluster)
    assert mine.closed


def test_a_client_that_may_still_be_at_work_counts_and_is_not_closed() -> None:
    pool = Pool(8)
    for cluster in range(8):
        client = pool.used(cluster)
        assert client is not None
        client.busy_until = float("inf")
    assert pool.use(9, 2) is None
    assert FakeClient.alive == 8


def test_a_client_that_has_lost_its_connections_is_replaced_and_the_next_one_lives_no_longer(pool: Pool) -> None:
    old = pool.used(1)
    assert old is not None
    old.has_lost_connections = True
    new = pool.used(1)
    assert new is not None
    assert (new is old, new.lifetime_seconds) == (False, old.lifetime_seconds)


def test_a_spent_client_is_replaced_and_closed_when_nothing_is_under_way() -> None:
    pool = Pool(8)
    old = pool.use(1)
    assert old is not None
    old.needs_replacement = True
    new = pool.use(1)
    assert new is not None
    assert (new is old, new.lifetime_seconds, old.closed) == (False, 10.0, False)
    # The user of the new one ends first: the old one is still in use.
    pool.release(new)
    pool.used(2)
    assert not old.closed
    pool.release(old)
    pool.used(3)
    assert old.closed
    assert not new.closed


def test_new_settings_make_a_new_client() -> None:
    pool = Pool(8)
    old = pool.used(1)
    new = pool.get(1, 2, dict)
    assert new is not old
    pool.used(3)
    assert old is not None
    assert old.closed


def test_refused_settings_leave_nothing_behind() -> None:
    pool = Pool(8)

    def refuse() -> dict[str, str]:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        pool.get(1, 1, refuse)
    assert len(pool) == 0


def opened(pool: Pool, version: str, token: int, **config: Any) -> Any:
    answers: list[Any] = []

    def is_there() -> bool:
        answers.append(pool.get(1, version, lambda: config, token=token))
        return answers[-1] is not None

    wait_until(is_there, 10, "the client was opened")
    return answers[-1]


def test_without_a_token_a_client_is_there_at_once(pool: Pool) -> None:
    assert pool.get(1, "v", dict) is pool.get(1, "v", dict)


def test_with_a_token_nobody_waits_for_it(pool: Pool) -> None:
    FakeClient.let.clear()
    assert pool.get(1, "v", dict, token=1) is None
    assert pool.get(1, "v", dict, token=1) is None
    # Another cluster is not delayed.
    FakeClient.let.set()
    assert pool.get(2, "v", dict) is not None
    assert opened(pool, "v", 1) is opened(pool, "v", 1)


def test_the_client_of_the_token_before_serves_until_the_next_is_there(pool: Pool) -> None:
    first = opened(pool, "v", 1)
    FakeClient.let.clear()
    assert pool.get(1, "v", dict, token=2) is first
    assert pool.get(1, "v", dict, token=2) is first
    FakeClient.let.set()
    wait_until(lambda: pool.get(1, "v", dict, token=2) is not first, 10, "the next client took over")
    # The first one may have requests under way: it stays open, but is not used.
    assert first in [old.client for old in pool._retired]


def test_other_settings_never_use_the_client_of_the_old_ones(pool: Pool) -> None:
    first = opened(pool, "v1", 1)
    FakeClient.let.clear()
    assert pool.get(1, "v2", dict, token=1) is None
    FakeClient.let.set()
    assert opened(pool, "v2", 1) is not first
    assert first in [old.client for old in pool._retired]


def test_a_next_client_that_cannot_be_opened_leaves_the_one_that_there_is(pool: Pool) -> None:
    first = opened(pool, "v", 1)
    bad = {"bad": True}
    pool.get(1, "v", lambda: bad, token=2)
    for asked in list(pool._opener._pending.values()):
        assert asked.exception(10) is not None
    assert pool.get(1, "v", lambda: bad, token=2) is first
    assert opened(pool, "v", 2) is first


def test_what_the_client_refuses_is_refused_and_tried_again_later(pool: Pool) -> None:
    with pytest.raises(ValueError, match="refused"):
        opened(pool, "v", 1, bad=True)
    assert opened(pool, "v", 1) is not None


def test_clients_that_are_being_opened_count(pool: Pool) -> None:
    few = Pool(4)
    FakeClient.let.clear()
    assert [few.get(cluster, "v", dict, tenant_id=cluster, token=1) for cluster in range(6)] == [None] * 6
    assert len(few) == 4
    assert few.get(7, "v", dict, tenant_id=7) is None
    FakeClient.let.set()
    wait_until(lambda: few.get(0, "v", dict, tenant_id=0, token=1) is not None, 10, "the client was opened")
    assert len(few) == 4


def test_no_more_than_half_are_opened_for_those_who_never_answered(pool: Pool) -> None:
    few = Pool(8)
    FakeClient.let.clear()
    theirs = [few.get(cluster, "v", dict, tenant_id=1, responsive=False, token=1) for cluster in range(20)]
    assert theirs == [None] * 20
    assert len(few) == 4
    FakeClient.let.set()
    assert few.get(100, "v", dict, tenant_id=2) is not None
