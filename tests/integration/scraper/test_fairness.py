"""One tenant's dead clusters and giant topic make nobody else's samples late, nor the process larger.

Time goes by ticks that the test calls, so a slow machine changes nothing: an age is a number of ticks.
"""

from __future__ import annotations

import gc
import selectors
import socket
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import quantiles

import pyarrow as pa
import pytest

from devstack.server import wait_until
from lagscale.store import Lease, leases, targets
from services.scraper.kafka import KafkaCluster
from services.scraper.pipeline import worker
from services.scraper.pipeline.sink import BatchPart, SampleWriter
from services.scraper.poll import Cluster
from services.scraper.problems import Problem
from services.scraper.targets import ClusterPlan, Planner, Slot
from tests.integration.scraper.conftest import World
from tests.integration.scraper.giant import PARTITIONS, Giant, beside

pytestmark = pytest.mark.integration

TICK_MS = 1000
#: The setting that bounds the threads; small, so that the dead clusters would not fit.
CLIENTS = 24
#: The library's main and background threads, its own broker, the bootstrap server and the broker behind it.
THREADS_A_CLIENT = 6
DEAD = 200
OTHERS = 5
ROUNDS = 100


@contextmanager
def silent(count: int) -> Iterator[list[str]]:
    """Addresses that accept connections and never say a word."""
    selector = selectors.DefaultSelector()
    stop = threading.Event()
    accepted: list[socket.socket] = []
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=64)) for _ in range(count)]
        for listening in sockets:
            listening.setblocking(False)
            selector.register(listening, selectors.EVENT_READ)

        def accept() -> None:
            while not stop.is_set():
                for key, _ in selector.select(0.1):
                    assert isinstance(key.fileobj, socket.socket)
                    accepted.append(key.fileobj.accept()[0])
                # Who has gone need not be kept; only the living wait for an answer.
                for one in [one for one in accepted if _is_over(one)]:
                    accepted.remove(one)
                    one.close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield [f"127.0.0.1:{listening.getsockname()[1]}" for listening in sockets]
        stop.set()
        thread.join(5)
        for one in accepted:
            one.close()
        selector.close()


def _is_over(accepted: socket.socket) -> bool:
    accepted.setblocking(False)
    try:
        # What is left unread keeps a connection as silent as one that is read.
        return not accepted.recv(4096)
    except BlockingIOError:
        return False
    except OSError:
        return True


@contextmanager
def refusing(count: int) -> Iterator[list[str]]:
    """Addresses that refuse every connection: bound, so that nobody else takes them, and not listening."""
    with ExitStack() as stack:
        addresses = []
        for _ in range(count):
            bound = stack.enter_context(socket.socket())
            bound.bind(("127.0.0.1", 0))
            addresses.append(f"127.0.0.1:{bound.getsockname()[1]}")
        yield addresses


class WithGiant(worker.Kept):
    """What a worker keeps, with one cluster simulated below the seam."""

    giant_id = -1
    giant = Giant()

    def open(self, plan: ClusterPlan) -> KafkaCluster | Problem | None:
        if plan.cluster.cluster_id == self.giant_id:
            simulated: Cluster = self.giant
            return simulated  # type: ignore[return-value]
        return super().open(plan)


class Town:
    """Many tenants, their clusters, and rounds of all of them."""

    def __init__(self, world: World) -> None:
        self.world = world
        world.options = replace(world.options, tick_ms=TICK_MS, clients_limit=CLIENTS)
        self.planner = Planner(TICK_MS, world.options.slots, world.options.tenant_partitions)
        self.at_ms = 0.0
        self.slots: list[Slot] = []
        self.topic = world.topic()
        self.loud = self.tenant(max_clusters=1000, max_partitions=1_000_000)
        lease = leases.keep(world.database, world.options.holder, 600)
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
        (target,) = self.world.monitor(cluster, f"g-{uuid.uuid4().hex[:8]}", self.topic, sampling_ms=TICK_MS)
        return cluster, target

    def round(self) -> list[BatchPart]:
        """One tick: plan, then poll and write slot after slot."""
        world = self.world
        now_ms, _ = world.database.now_ms()
        self.at_ms = max(now_ms, self.at_ms + TICK_MS)
        polling, unproven = targets.read(world.database), targets.failed_clusters(world.database)
        self.slots = self.planner.plan(polling, unproven, self.at_ms)
        parts = []
        for slot in self.slots:
            batches: list[pa.RecordBatch] = list(worker.read(world.options, slot, self.lease.epoch, now_ms))
            parts.append(SampleWriter(world.options).write(iter(batches)))
        return parts

    def stored(self, wanted: Sequence[int]) -> dict[int, int]:
        """Rows of each target."""
        found = self.world.ask(
            "select target_id, count(*) from every_lag_sample where target_id = any(%s) group by target_id",
            list(wanted),
        )
        return dict(found)


class Ages:
    """How old each target's newest sample is after each round, in ticks."""

    def __init__(self, town: Town) -> None:
        self._town = town
        self._rows: dict[int, int] = {}
        self._last: dict[int, int] = {}
        self.seen: list[int] = []

    def note(self, wanted: Sequence[int], number: int) -> None:
        rows = self._town.stored(wanted)
        for target in wanted:
            if rows.get(target, 0) > self._rows.get(target, 0):
                self._last[target] = number
            self.seen.append(number - self._last.get(target, -1))
        self._rows = rows

    def p99(self) -> float:
        return quantiles(self.seen, n=100)[-1]


def status(name: str) -> int:
    """A number of this process's: of threads, or kB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1])


@pytest.fixture
def town(world: World) -> Iterator[Town]:
    made = Town(world)
    # The group coordinator of a fresh broker needs a moment; that is no matter of fairness.
    world.commit(f"g-{uuid.uuid4().hex[:8]}", made.topic, 0)
    yield made
    worker.forget(world.options)


@pytest.mark.timeout(240)
def test_dead_clusters_and_a_giant_of_one_tenant_make_nobody_wait_and_nothing_grow(town: Town) -> None:
    world = town.world
    giant_cluster, giant = town.target("127.0.0.1:9")
    kept = WithGiant(
        worker.kept(world.options).database, worker.kept(world.options).box, worker.kept(world.options).clients
    )
    WithGiant.giant_id = giant_cluster
    worker._kept[world.options] = kept
    with silent(DEAD) as accepting, refusing(DEAD) as closed, ExitStack() as stack:
        dead = [town.target(address)[0] for address in (*accepting, *closed)]
        others = []
        for _ in range(OTHERS):
            town.tenant()
            others.append(town.target()[1])
        ages, threads, memory, sizes = Ages(town), [], [], []
        before = status("Threads")
        aside = None
        for number in range(ROUNDS):
            town.round()
            ages.note(others, number)
            threads.append(status("Threads") - before)
            sizes.append(len(kept.clients))
            if number % 5 == 0:
                gc.collect()
                memory.append(status("VmRSS"))
            # A round never lasts longer than half a tick for whatever does not answer, and holds no giant.
            assert all(slot.seconds <= TICK_MS / 2000 for slot in town.slots)
            assert not any(group.large for slot in town.slots for plan in slot.clusters for group in plan.groups)
            if aside is None and town.planner.large:
                aside = beside(world.options, town.planner.large, town.lease)
                stack.callback(aside.terminate)
            if number == ROUNDS // 2:
                # Who comes later is as welcome.
                town.tenant()
                late = Ages(town)
                newcomer = town.target()[1]
            if number > ROUNDS // 2:
                late.note([newcomer], number - ROUNDS // 2 - 1)
        assert aside is not None, "the giant was found and is polled aside"
        wait_until(lambda: town.stored([giant]).get(giant, 0) >= 2, 60, "the giant was measured twice")
    assert ages.p99() <= 2
    assert late.p99() <= 2
    assert max(sizes) <= CLIENTS
    assert max(threads) <= CLIENTS * (THREADS_A_CLIENT + 1) + 8
    # From round 20 on: a client kept for each probe would be tens of megabytes more.
    assert memory[-1] - memory[4] < 48 * 1024
    codes = dict(world.ask("select code, count(*) from cluster_state where cluster_id = any(%s) group by code", dead))
    assert sum(codes.values()) == 2 * DEAD, "each of the dead was asked"
    assert "ok" not in codes
    assert codes["unreachable"] >= DEAD
    assert world.rows(giant)[0]["parts"] == PARTITIONS or len(world.rows(giant)[0]["lags"]) == PARTITIONS


def test_hundreds_that_answered_a_moment_ago_and_fall_silent_together_make_nobody_wait(town: Town) -> None:
    with silent(DEAD) as accepting, refusing(DEAD) as closed:
        loud, others = town.world.tenant, []
        for _ in range(OTHERS):
            town.tenant()
            others.append(town.target()[1])
        wait_until(lambda: bool(town.round()) and len(town.stored(others)) == OTHERS, 30, "the others are measured")
        town.world.tenant = loud
        dead = [town.target(address)[0] for address in (*accepting, *closed)]
        town.world.ask(
            "insert into cluster_state (cluster_id, tenant_id, code, since, seen_at) "
            "select id, tenant_id, 'ok', now(), now() from cluster on conflict do nothing"
        )
        ages = Ages(town)
        for number in range(20):
            town.round()
            ages.note(others, number)
    assert ages.p99() <= 2
    states = town.world.ask("select code from cluster_state where cluster_id = any(%s) and code = 'ok'", dead)
    assert states == [], "all of them were found out"


def test_no_cluster_is_said_to_be_dead_only_because_its_turn_did_not_come(town: Town) -> None:
    with silent(CLIENTS * 3) as accepting:
        town.tenant()
        for address in accepting:
            town.target(address)
        good = [town.target()[0] for _ in range(3)]
        town.world.ask(
            "insert into cluster_state (cluster_id, tenant_id, code, since, seen_at) "
            "select id, tenant_id, 'ok', now(), now() from cluster"
        )
        for _ in range(6):
            town.round()
            states = town.world.ask("select code from cluster_state where cluster_id = any(%s)", good)
            assert {code for (code,) in states} == {"ok"}
