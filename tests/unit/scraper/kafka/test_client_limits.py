"""Who has a client and who gives one up: never more than the limit, the greatest tenant first, none that is in use."""

from __future__ import annotations

from collections import Counter

import pytest

from services.scraper.kafka import clients
from services.scraper.kafka.clients import Clients


class FakeClient:
    """Counts who lives."""

    alive = 0

    def __init__(self, config: object, lifetime_seconds: float, rules: object) -> None:
        FakeClient.alive += 1
        self.lifetime_seconds, self.needs_replacement, self.busy_until = lifetime_seconds, False, 0.0
        self.closed = False

    def close(self) -> None:
        assert not self.closed
        self.closed = True
        FakeClient.alive -= 1


@pytest.fixture(autouse=True)
def faked(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeClient.alive = 0
    monkeypatch.setattr(clients, "KafkaCluster", FakeClient)


class Pool(Clients):
    """Short words for the tests."""

    def use(self, cluster: int, tenant: int = 1, *, responsive: bool = True) -> FakeClient | None:
        found = self.get(cluster, 1, dict, tenant_id=tenant, responsive=responsive)
        assert found is None or isinstance(found, FakeClient)
        return found

    def used(self, cluster: int, tenant: int = 1, *, responsive: bool = True) -> FakeClient | None:
        found = self.use(cluster, tenant, responsive=responsive)
        if found is not None:
            self.release(found)
        return found

    def tenants(self) -> Counter[int]:
        return Counter(kept.tenant_id for kept in self._cached.values())


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
    assert sum(not kept.responsive for kept in pool._cached.values()) == 1


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


def test_a_spent_client_is_replaced_and_closed_when_nothing_is_under_way() -> None:
    pool = Pool(8)
    old = pool.use(1)
    assert old is not None
    old.needs_replacement = True
    new = pool.use(1)
    assert new is not None
    assert (new is old, new.lifetime_seconds, old.closed) == (False, 10.0, False)
    # Whoever has the new one ends first: the old one is in use still.
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
