"""Age of samples while another tenant has 200 silent clusters, 200 that refuse, and an oversized topic, by a running scraper.

`python -m tests.bench.fairness`: starts a broker, a database and one scraper; prints ages of the other tenants' samples,
and the scraper's threads and memory while it goes on.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import psycopg
from confluent_kafka.admin import AdminClient, NewTopic

from devstack.broker import Broker
from devstack.database import Database
from devstack.server import wait_until
from devstack.sockets import refusing, silent
from devstack.stack import Stack
from lagscale.store.scraping.leases import Lease
from lagscale.store.scraping.targets import ClusterEntry, TargetEntry
from services.scraper.planning.plan import ClusterPlan, GroupPlan
from tests.integration.scraper.oversized import PARTITIONS, start_background_poller
from tests.support.engine_options import build_options

_DEAD = 200
_INTERVAL_SECONDS = 0.5


def main() -> int:
    """Run it; 0 when the 99th percentile of the ages is at most two ticks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tenants", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--tick", type=float, default=5.0, help="seconds")
    given = parser.parse_args()
    with (
        Broker() as broker, Database() as database, tempfile.TemporaryDirectory() as folder,
        silent(_DEAD) as accepting, refusing(_DEAD) as closed,
    ):  # fmt: skip
        url = database.create_database("fairness")
        stack = Stack(url, Path(folder), tick_seconds=given.tick)
        stack.migrate()
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.create_topics([NewTopic("orders", 6, 1)])["orders"].result(60)
        with psycopg.connect(url, autocommit=True) as connection:
            sampling_ms = round(given.tick * 1000)
            loud = _tenant(connection, "loud")
            for address in (*accepting, *closed):
                _target(connection, loud, address, "orders", sampling_ms)
            others = [
                _target(connection, _tenant(connection, f"t-{n}"), broker.address, "orders", sampling_ms)
                for n in range(given.tenants)
            ]
            stack.spawn("scraper")
            try:
                oversized, background = _oversized(connection, url, loud, sampling_ms)
                ages, threads, memory = _watch(connection, others, given.seconds)
                background.terminate()
                rounds = _one(connection, "select count(*) from every_lag_sample where target_id = %s", oversized)
            finally:
                stack.stop()
    ages.sort()
    p99 = ages[int(len(ages) * 0.99)]
    print(
        f"{len(others)} tenants beside {2 * _DEAD} dead clusters"
        f" and {PARTITIONS} partitions in one topic ({rounds} rounds of it), tick {given.tick:g} s: age of the newest sample median {statistics.median(ages):.1f} s, "
        f"p99 {p99:.1f} s, most {ages[-1]:.1f} s; bar {2 * given.tick:g} s"
    )
    print(
        f"scraper's processes: threads {min(threads)} to {max(threads)}, resident {memory[0]:.0f} MB at the beginning, "
        f"{memory[-1]:.0f} MB at the end"
    )
    return 0 if p99 <= 2 * given.tick else 1


def _oversized(connection: psycopg.Connection, url: str, tenant: int, sampling_ms: int) -> tuple[int, BaseProcess]:
    """A simulated target of 100,000 partitions, polled as oversized groups are; no broker here has as many."""
    target = _target(connection, tenant, "127.0.0.1:9", "oversized", sampling_ms)
    row = connection.execute("select cluster_id from lag_target where id = %s", [target]).fetchone()
    assert row is not None
    entry = TargetEntry(target, tenant, row[0], "g", "oversized", False, "", sampling_ms, 60_000, PARTITIONS)
    plan = ClusterPlan(
        ClusterEntry(row[0], tenant, ("127.0.0.1:9",), {}, None, 1),
        (GroupPlan("g", (entry,), sampling_ms, True, large=True),),
    )

    def leading() -> tuple[str, int] | None:
        return connection.execute("select holder, epoch from scraper_lease").fetchone()

    wait_until(lambda: leading() is not None, 180, "the scraper leads")
    found = leading()
    assert found is not None
    options = build_options(url, found[0], sampling_ms)
    return target, start_background_poller(options, [plan], Lease(*found))


def _tenant(connection: psycopg.Connection, name: str) -> int:
    statement = "insert into tenant (name, max_clusters, max_partitions) values (%s, 1000, 1000000) returning id"
    return _one(connection, statement, name)


def _target(connection: psycopg.Connection, tenant: int, address: str, topic: str, sampling_ms: int) -> int:
    cluster = _one(
        connection,
        "insert into cluster (tenant_id, name, bootstrap) values (%s, 'c-' || gen_random_uuid(), %s) returning id",
        *(tenant, [address]),
    )
    monitor = _one(
        connection,
        "insert into monitor (tenant_id, name, cluster_id, consumer_group, topics, policy, sampling_ms, stale_after_ms, "
        "content_hash) values (%s, 'm-' || gen_random_uuid(), %s, 'g', %s, '{}', %s, 60000, '') returning id",
        *(tenant, cluster, [topic], sampling_ms),
    )
    target = _one(
        connection,
        "insert into lag_target (tenant_id, cluster_id, consumer_group, topic, isolation_level) "
        "values (%s, %s, 'g', %s, 'read_uncommitted') returning id",
        *(tenant, cluster, topic),
    )
    connection.execute("insert into monitor_target values (%s, %s, %s)", (monitor, target, tenant))
    return target


def _one(connection: psycopg.Connection, statement: str, *parameters: object) -> int:
    row = connection.execute(statement, parameters).fetchone()
    return 0 if row is None else int(row[0])


def _watch(
    connection: psycopg.Connection, targets: list[int], seconds: float
) -> tuple[list[float], list[int], list[float]]:
    """Ages in seconds from the first sample of each target on, threads, and resident MB, twice a second."""

    def read() -> list[float]:
        rows = connection.execute(
            "select extract(epoch from clock_timestamp() - max(ts)) from every_lag_sample "
            "where target_id = any(%s) group by target_id",
            [targets],
        ).fetchall()
        return [float(row[0]) for row in rows]

    wait_until(lambda: len(read()) == len(targets), 180, "every tenant was measured once")
    ages: list[float] = []
    threads: list[int] = []
    memory: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ages += read()
        found = _processes()
        threads.append(sum(one for one, _ in found))
        memory.append(sum(kilobytes for _, kilobytes in found) / 1024)
        due = time.monotonic() + _INTERVAL_SECONDS
        wait_until(lambda due=due: time.monotonic() >= due, 60, "the next reading is due")
    return ages, threads, memory


def _processes() -> list[tuple[int, int]]:
    """Threads and resident kB of each of Spark's Python processes that descend from this process."""
    found: dict[int, tuple[int, int, int, str]] = {}
    for path in Path("/proc").glob("[0-9]*/status"):
        try:
            facts = dict(line.split(":\t", 1) for line in path.read_text().splitlines() if ":\t" in line)
            found[int(facts["Pid"])] = (
                int(facts["PPid"]), int(facts["Threads"]), int(facts.get("VmRSS", "0").split()[0]), facts["Name"],
            )  # fmt: skip
        except (OSError, KeyError, ValueError):
            continue  # It ended meanwhile.
    ours = {os.getpid()}
    while more := {pid for pid, (parent, *_) in found.items() if parent in ours} - ours:
        ours |= more
    return [
        (threads, resident) for pid, (_, threads, resident, name) in found.items() if pid in ours and "python" in name
    ]


if __name__ == "__main__":
    raise SystemExit(main())
