"""One tenant's dead clusters and oversized topic delay no other tenant's samples, and the process does not grow.

Time goes by ticks that the test calls, so a slow machine changes nothing: an age is a number of ticks.
"""

from __future__ import annotations

import gc
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import pairwise
from multiprocessing.process import BaseProcess
from pathlib import Path
from statistics import quantiles
from typing import Any

import pyarrow as pa
import pytest

from devstack.server import wait_until
from devstack.sockets import refusing, silent
from lagscale.store.scraping import leases, targets
from lagscale.store.scraping.leases import Lease
from lagscale.store.scraping.targets import ClusterEntry
from services.scraper.engine import worker
from services.scraper.kafka.open import ClusterOpener
from services.scraper.planning.plan import Slot
from services.scraper.planning.planner import PollPlanner
from services.scraper.spark.datasource import SampleWriter
from services.scraper.worker_reports import BatchPart
from tests.integration.scraper.conftest import World
from tests.integration.scraper.oversized import PARTITIONS, OversizedCluster, start_background_poller

pytestmark = pytest.mark.integration

TICK_MS = 1000
#: The setting that bounds the threads; small, so that the dead clusters would not fit.
CLIENTS = 24
#: The library's main and background threads, its own broker, the bootstrap server and the broker behind it.
THREADS_A_CLIENT = 6
DEAD = 200
OTHERS = 5
ROUNDS = 100
HALF = ROUNDS // 2
#: From here on nothing may grow; what the allocator keeps back apart.
WINDOWS = (20, 40, 60, 80, ROUNDS - 1)
FLAT_KB = 8 * 1024


@dataclass(frozen=True)
class OpenerWithOversized(ClusterOpener):
    """A worker's opener, with one cluster simulated."""

    oversized_id: int = -1
    oversized: OversizedCluster = field(default_factory=OversizedCluster)

    def open(self, cluster: ClusterEntry, *, responsive: bool = True) -> Any:
        return (
            self.oversized if cluster.cluster_id == self.oversized_id else super().open(cluster, responsive=responsive)
        )


class Town:
    """Many tenants, their clusters, and rounds of all of them."""

    def __init__(self, world: World, tick_ms: int) -> None:
        self.world, self.tick_ms = world, tick_ms
        world.options = replace(world.options, tick_ms=tick_ms, clients_limit=CLIENTS)
        self.planner = PollPlanner(tick_ms, world.options.slots, world.options.tenant_partitions, CLIENTS // 4)
        self.at_ms = 0.0
        self.slots: list[Slot] = []
        self.topic = world.topic()
        self.loud = self.tenant(max_clusters=1000, max_partitions=1_000_000)
        lease = leases.acquire(world.database, world.options.holder, 600)
        assert lease is not None
        self.lease: Lease = lease

    def tenant(self, **quotas: int) -> int:
        """A tenant; the clusters that follow are its."""
        names, values = ["name", *quotas], [f"t-{uuid.uuid4().hex[:10]}", *quotas.values()]
        statement = f"insert into tenant ({', '.join(names)}) values ({', '.join(['%s'] * len(values))}) returning id"
        self.world.tenant = int(self.world.ask(statement, *values)[0][0])
        return self.world.tenant

    def target(self, address: str | None = None) -> tuple[int, int]:
        """A cluster of the present tenant with one target; both ids."""
        cluster = self.world.cluster(address)
        (target,) = self.world.monitor(cluster, f"g-{uuid.uuid4().hex[:8]}", self.topic, sampling_ms=self.tick_ms)
        return cluster, target

    def round(self) -> list[BatchPart]:
        """One tick: plan, then poll and write slot after slot."""
        world = self.world
        now_ms, _ = world.database.now_ms()
        self.at_ms = max(now_ms, self.at_ms + self.tick_ms)
        polling, unresponsive = targets.read_inventory(world.database), targets.failed_clusters(world.database)
        self.slots = self.planner.plan(polling, unresponsive, self.at_ms)
        parts = []
        for slot in self.slots:
            batches: list[pa.RecordBatch] = list(worker.run_task(world.options, slot, self.lease.epoch, now_ms))
            parts.append(SampleWriter(world.options).write(iter(batches)).part)
        return parts

    def stored(self, target_ids: Sequence[int]) -> dict[int, int]:
        """Rows of each target."""
        found = self.world.ask(
            "select target_id, count(*) from every_lag_sample where target_id = any(%s) group by target_id",
            list(target_ids),
        )
        return dict(found)


class Ages:
    """How old each target's newest sample is after each round, in ticks."""

    def __init__(self, town: Town) -> None:
        self._town = town
        self._rows: dict[int, int] = {}
        self._last: dict[int, int] = {}
        self.intervals: list[int] = []

    def note(self, target_ids: Sequence[int], number: int) -> None:
        rows = self._town.stored(target_ids)
        for target in target_ids:
            if rows.get(target, 0) > self._rows.get(target, 0):
                self._last[target] = number
            self.intervals.append(number - self._last.get(target, -1))
        self._rows = rows

    def p99(self) -> float:
        return quantiles(self.intervals, n=100)[-1]


def status(name: str, process: int | str = "self") -> int:
    """A number of a process's: of threads, or kB."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1])


class Grown:
    """Threads, clients and memory of this process, round after round."""

    def __init__(self, resources: worker.WorkerResources) -> None:
        self._resources = resources
        self._before = status("Threads")
        self.threads: list[int] = []
        self.clients: list[int] = []
        self.kilobytes: dict[int, int] = {}

    def note(self, number: int) -> None:
        self.threads.append(status("Threads") - self._before)
        self.clients.append(len(self._resources.opener.clients))
        if number in WINDOWS:
            gc.collect()
            self.kilobytes[number] = status("VmRSS")

    def check(self) -> None:
        assert max(self.clients) <= CLIENTS
        assert max(self.threads) <= CLIENTS * (THREADS_A_CLIENT + 1) + 8
        # A client kept for each probe would be tens of megabytes more, and hundreds of threads. What is kept for each
        # probe grows in every window; an arena that the allocator maps, for a thread of a module before, in one.
        assert min(later - former for former, later in pairwise(self.kilobytes.values())) < FLAT_KB / len(WINDOWS)


class BackgroundRun:
    """The process that polls the oversized group once it was found, and the most memory of one round."""

    def __init__(self, town: Town, oversized: int, stack: ExitStack) -> None:
        self._town, self._oversized, self._stack = town, oversized, stack
        self._process: BaseProcess | None = None
        self._peak = 0

    def note(self) -> None:
        if self._process is None and self._town.planner.large:
            self._process = start_background_poller(
                self._town.world.options, self._town.planner.large, self._town.lease
            )
            self._stack.callback(self._process.terminate)
        elif not self._peak and self._rounds() >= 2:
            # The second round is compared with the first, which takes more.
            self._peak = self._most()

    def check(self) -> None:
        assert self._process is not None, "the oversized group was found and is polled out of band"
        wait_until(lambda: self._rounds() >= 4, 120, "the oversized group was measured four times")
        assert self._peak, "it was measured twice while the others were polled"
        assert self._most() - self._peak < FLAT_KB

    def _rounds(self) -> int:
        return self._town.stored([self._oversized]).get(self._oversized, 0)

    def _most(self) -> int:
        assert self._process is not None
        assert self._process.pid is not None
        return status("VmHWM", self._process.pid)


@pytest.fixture
def town(world: World, request: pytest.FixtureRequest) -> Iterator[Town]:
    made = Town(world, getattr(request, "param", TICK_MS))
    # A new broker has no group coordinator at first; that does not concern fairness.
    world.commit(f"g-{uuid.uuid4().hex[:8]}", made.topic, 0)
    yield made
    worker.close_resources(world.options)


@pytest.mark.timeout(240)
def test_dead_clusters_and_an_oversized_topic_of_one_tenant_delay_no_other_and_nothing_grows(town: Town) -> None:
    world = town.world
    oversized_cluster, oversized = town.target("127.0.0.1:9")
    resources = simulated(town, oversized_cluster)
    with silent(DEAD) as accepting, refusing(DEAD) as closed, ExitStack() as stack:
        dead = [town.target(address)[0] for address in (*accepting, *closed)]
        others = []
        for _ in range(OTHERS):
            town.tenant()
            others.append(town.target()[1])
        ages, late, grown = Ages(town), Ages(town), Grown(resources)
        background = BackgroundRun(town, oversized, stack)
        for number in range(ROUNDS):
            town.round()
            ages.note(others, number)
            grown.note(number)
            # No round lasts longer than half a tick, whatever does not answer, and none has an oversized group.
            assert all(slot.seconds <= town.tick_ms / 2000 for slot in town.slots)
            assert not any(group.large for slot in town.slots for plan in slot.clusters for group in plan.groups)
            background.note()
            if number == HALF:
                # Who comes later is as welcome.
                town.tenant()
                newcomer = town.target()[1]
            if number > HALF:
                late.note([newcomer], number - HALF - 1)
        background.check()
    assert ages.p99() <= 2
    assert late.p99() <= 2
    grown.check()
    codes = dict(world.ask("select code, count(*) from cluster_state where cluster_id = any(%s) group by code", dead))
    assert sum(codes.values()) == 2 * DEAD, "each of the dead was asked"
    assert "ok" not in codes
    assert codes["unreachable"] >= DEAD
    assert len(world.rows(oversized)[0]["lags"]) == PARTITIONS


def simulated(town: Town, cluster: int) -> worker.WorkerResources:
    """The worker's resources from now on: this cluster is simulated."""
    resources = worker.get_resources(town.world.options)
    usual = resources.opener
    resources.opener = OpenerWithOversized(
        usual.clients, usual.keyring, usual.secret_sources, usual.rules, usual.tokens, oversized_id=cluster
    )
    return resources


def neighbors(town: Town) -> dict[int, int]:
    """Other tenants with one cluster and one target each, measured already: cluster by target."""
    found: dict[int, int] = {}
    for _ in range(OTHERS):
        town.tenant()
        cluster, target = town.target()
        found[target] = cluster
    wait_until(lambda: bool(town.round()) and len(town.stored([*found])) == OTHERS, 60, "the others are measured")
    return found


def crowd(town: Town, addresses: Sequence[str]) -> list[int]:
    """Clusters of the loud tenant that are said to have answered when they were polled last."""
    town.world.tenant = town.loud
    made = [town.target(address)[0] for address in addresses]
    town.world.ask(
        "insert into cluster_state (cluster_id, tenant_id, code, since, seen_at) "
        "select id, tenant_id, 'ok', now(), now() from cluster where id = any(%s)",
        made,
    )
    return made


@pytest.mark.parametrize("town", [2000], indirect=True)
def test_hundreds_that_just_answered_and_fall_silent_together_delay_no_other_tenant(town: Town) -> None:
    with silent(DEAD) as accepting, refusing(DEAD) as closed:
        others = neighbors(town)
        dead = crowd(town, (*accepting, *closed))
        ages = Ages(town)
        for number in range(6):
            town.round()
            ages.note([*others], number)
    assert max(ages.intervals) <= 2
    states = town.world.ask("select code from cluster_state where cluster_id = any(%s) and code = 'ok'", dead)
    # As many at each tick as there are clients for one tenant, so all of them in time.
    assert 2 * DEAD - len(states) >= 6 * CLIENTS // 2, "they are found out"


@pytest.mark.parametrize("town", [2000], indirect=True)
def test_no_cluster_is_said_to_be_dead_only_because_its_turn_did_not_come(town: Town) -> None:
    with silent(CLIENTS * 3) as accepting:
        others = neighbors(town)
        dead = crowd(town, accepting)
        town.round()
        states = town.world.ask("select code, count(*) from cluster_state where cluster_id = any(%s) group by 1", dead)
        assert 0 < dict(states)["timeout"] <= CLIENTS, "so many were asked"
        assert dict(states)["ok"] >= CLIENTS * 2, "of the others nothing is said"
        assert {
            code
            for (code,) in town.world.ask(
                "select code from cluster_state where cluster_id = any(%s)", [*others.values()]
            )
        } == {"ok"}
