"""The scraper as processes on real parts: one leads, the other takes over, nothing stays behind."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from devstack.broker import Broker
from devstack.server import free_port, wait_until
from devstack.stack import Stack

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]
TICK_SECONDS = 1.0
_START_SECONDS = 180.0


class Scrapers:
    """Scraper processes over one database, by name."""

    def __init__(self, stack: Stack, url: str, broker: Broker) -> None:
        self.stack, self.url, self.broker = stack, url, broker
        self.admin = AdminClient({"bootstrap.servers": broker.address})
        self.listens: dict[str, str] = {}

    def start(self, name: str) -> None:
        self.listens[name] = f"127.0.0.1:{free_port()}"
        self.stack.spawn("scraper", name, LAGSCALE_SCRAPER_HTTP_LISTEN=self.listens[name])

    def await_ready(self, *names: str) -> None:
        for name in names:
            self.stack.servers[name].await_ready(partial(self.is_ready, name), _START_SECONDS)

    def is_ready(self, name: str) -> bool:
        return self.status(name)[0] == 200

    def status(self, name: str) -> tuple[int, dict[str, Any]]:
        try:
            answer = httpx.get(f"http://{self.listens[name]}/readyz", timeout=2)
        except httpx.HTTPError:
            return 0, {}
        return answer.status_code, answer.json()

    def leads(self, name: str) -> bool:
        return bool(self.status(name)[1].get("leading"))

    def leader(self) -> str:
        wait_until(lambda: any(self.leads(name) for name in self.stack.servers), 60, "one led")
        return next(name for name in self.stack.servers if self.leads(name))

    def metric(self, name: str, metric: str) -> float:
        text = httpx.get(f"http://{self.listens[name]}/metrics", timeout=2).text
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(metric))

    def pids(self, name: str) -> list[int]:
        """Every process that was given this scraper's cache directory: the service, the JVM, its workers."""
        variable = f"LAGSCALE_CACHE_DIR={self.stack.folder / 'cache' / name}/scraper".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if variable in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:
                continue
        return found

    def ask(self, statement: str, *parameters: object) -> list[Any]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement, parameters)
            return list(cursor.fetchall()) if cursor.description else []

    def monitor(self) -> int:
        """A new tenant, cluster, topic and monitor; the target's id."""
        name = f"n-{uuid.uuid4().hex[:10]}"
        self.admin.create_topics([NewTopic(name, 2, 1)])[name].result(20)
        tenant = self.ask("insert into tenant (name) values (%s) returning id", name)[0][0]
        cluster = self.ask(
            "insert into cluster (tenant_id, name, bootstrap) values (%s, 'main', %s) returning id",
            *(tenant, [self.broker.address]),
        )[0][0]
        target = self.ask(
            "insert into lag_target (tenant_id, cluster_id, consumer_group, topic, isolation_level) "
            "values (%s, %s, %s, %s, 'read_uncommitted') returning id",
            *(tenant, cluster, name, name),
        )[0][0]
        monitor = self.ask(
            "insert into monitor (tenant_id, name, cluster_id, consumer_group, topics, policy, sampling_ms, "
            "stale_after_ms, content_hash) values (%s, %s, %s, %s, %s, '{}', 1000, 30000, '') returning id",
            *(tenant, name, cluster, name, [name]),
        )[0][0]
        self.ask("insert into monitor_target values (%s, %s, %s)", monitor, target, tenant)
        return int(target)

    def rows(self, target: int) -> int:
        return int(self.ask("select count(*) from every_lag_sample where target_id = %s", target)[0][0])

    def await_more(self, target: int, seconds: float = 60) -> None:
        before = self.rows(target)
        wait_until(lambda: self.rows(target) >= before + 2, seconds, "two more rows came")


@pytest.fixture
def scrapers(migrated_url: str, broker: Broker, tmp_path: Path) -> Iterator[Scrapers]:
    stack = Stack(migrated_url, tmp_path, tick_seconds=TICK_SECONDS)
    try:
        yield Scrapers(stack, migrated_url, broker)
    finally:
        stack.stop()


def test_registrations_take_effect_while_it_runs_and_it_ends_in_order(scrapers: Scrapers) -> None:
    scrapers.start("one")
    scrapers.await_ready("one")
    first = scrapers.monitor()
    scrapers.await_more(first)
    second = scrapers.monitor()
    scrapers.await_more(second)
    scrapers.ask("update monitor set deleted_at = now() from lag_target t where t.id = %s and topics[1] = topic", first)
    version = scrapers.rows(second)
    wait_until(lambda: scrapers.rows(second) >= version + 3, 60, "three more ticks passed")
    stored = scrapers.rows(first)
    scrapers.await_more(second)
    assert scrapers.rows(first) == stored
    assert scrapers.metric("one", "lagscale_scraper_rounds_total") > 4
    assert scrapers.metric("one", "lagscale_scraper_leading") == 1
    server = scrapers.stack.servers["one"]
    assert server.process is not None
    os.kill(server.pid, signal.SIGTERM)
    server.process.wait(10)
    assert server.process.returncode == 0
    wait_until(lambda: not scrapers.pids("one"), 10, "JVM and workers ended")


def test_a_standby_takes_over_from_a_stopped_and_from_a_killed_leader(scrapers: Scrapers) -> None:
    target = scrapers.monitor()
    scrapers.start("one")
    scrapers.start("two")
    scrapers.await_ready("one", "two")
    leader = scrapers.leader()
    standby = "two" if leader == "one" else "one"
    assert not scrapers.leads(standby)
    scrapers.await_more(target)
    assert scrapers.metric(standby, "lagscale_scraper_rounds_total") == 0

    scrapers.stack.servers[leader].pause()
    scrapers.await_more(target)
    assert scrapers.leads(standby)
    scrapers.stack.servers[leader].resume()
    wait_until(lambda: scrapers.status(leader)[0] == 200 and not scrapers.leads(leader), 60, "the old one stands by")
    stored = scrapers.metric(leader, "lagscale_scraper_rounds_total")
    scrapers.await_more(target)
    assert scrapers.metric(leader, "lagscale_scraper_rounds_total") == stored
    assert scrapers.leads(standby)

    # Only the service is killed: its JVM and workers must end by themselves.
    os.kill(scrapers.stack.servers[standby].pid, signal.SIGKILL)
    scrapers.await_more(target)
    assert scrapers.leads(leader)
    wait_until(lambda: not scrapers.pids(standby), 30, "JVM and workers of the killed one ended")


def test_a_query_that_fails_is_started_again(scrapers: Scrapers) -> None:
    target = scrapers.monitor()
    scrapers.start("one")
    scrapers.await_ready("one")
    scrapers.await_more(target)
    planner = next(
        pid
        for pid in scrapers.pids("one")
        if b"python_streaming_source_runner" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )
    os.kill(planner, signal.SIGKILL)
    wait_until(
        lambda: scrapers.metric("one", "lagscale_scraper_query_restarts_total") >= 1, 60, "the query was restarted"
    )
    scrapers.await_more(target, 120)
