"""Broker, database, scraper and scaler are killed and restarted: no answer of 0 or inactive that was not measured.

Outages of 60 s and samples every 10 s are shortened by a factor of 10; staleAfterSeconds is 5 s. The system is separate
because an outage would disturb the other scenarios.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator

import grpc
import httpx
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from devstack.broker import Broker
from devstack.clients import KedaAnswer
from devstack.database import Database
from devstack.server import wait_until
from devstack.stack import Stack, is_ready
from services.scaler.local_cache import ANSWERS
from tests.e2e.system import Group, System, is_active_with, is_calm, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

POLICY = {
    "lagThreshold": 500,
    "sustainSeconds": 5,
    "samplingInterval": 1,
    "staleAfterSeconds": 5,
    "workSeconds": 3,
}
OUTAGE = 10.0


class Fleet:
    """A busy group, with the answer 1,500 and active, and an idle one, on servers that can be killed."""

    def __init__(self, system: System, broker: Broker, database: Database) -> None:
        self.system, self.broker, self.database = system, broker, database
        self.busy = system.watch(POLICY)
        self.idle = system.watch(POLICY)
        system.kafka.produce(self.busy.topic, 5_000, 3)
        self.settle()

    def settle(self) -> None:
        """Wait until both answers are measured."""
        until(self.busy.poll, is_active_with(1_500.0), 120, never=_is_wrong_for_busy)
        until(self.idle.poll, is_calm, 120)

    def await_saved(self) -> None:
        """Wait until the scaler has written its last answer to its local cache, which it does at most every second."""
        saved = self.system.stack.folder / "cache/scaler/scaler/scaler" / ANSWERS
        until(self.busy.poll, is_active_with(1_500.0), 30)
        wait_until(
            lambda: saved.exists() and "1500.0" in saved.read_text(), 30, "the answers were not in the local cache"
        )

    def mend(self) -> None:
        """Start everything that a test has left stopped, so that its failure does not affect the next one."""
        stack = self.system.stack
        if self.database.server.process is None:
            self.database.start()
        self.database.resume()
        if self.broker.server.process is None:
            self.broker.start()
        for service, server in list(stack.servers.items()):
            if server.process is None:
                stack.spawn(service)
                stack.await_ready(service)

    def endure(self, seconds: float) -> list[KedaAnswer]:
        """Poll both during an outage: the busy group keeps its last-known answer, the idle one gets an error.

        Returns:
            the answers for the idle group.
        """
        deadline = time.monotonic() + seconds
        polled: list[KedaAnswer] = []

        def over() -> bool:
            assert self.busy.keda.specs() == {self.busy.monitor: 500.0}
            busy = self.busy.poll()
            assert is_active_with(1_500.0)(busy), f"the busy group got {busy}"
            polled.append(self.idle.poll())
            return time.monotonic() > deadline and bool(polled[-1].error)

        wait_until(over, seconds + 60, "the idle group still gets an answer that was not measured")
        last_answer = max((n for n, answer in enumerate(polled) if not answer.error), default=-1)
        assert all(answer.error for answer in polled[last_answer + 1 :])
        assert all(answer.error.startswith("UNAVAILABLE") for answer in polled[last_answer + 1 :]), polled[-1]
        return polled


def _is_wrong_for_busy(answer: KedaAnswer) -> bool:
    return answer.active is False and answer.value is None


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A system whose servers can be killed."""
    with Broker() as broker, Database() as database:
        stack = Stack(database.create_database(f"out_{uuid.uuid4().hex[:8]}"), tmp_path_factory.mktemp("outages"))
        try:
            stack.start()
            system = System(stack, broker.address)
            yield Fleet(system, broker, database)
            system.close()
        finally:
            stack.stop()


@pytest.fixture(autouse=True)
def _mended(fleet: Fleet) -> Iterator[None]:
    yield
    fleet.mend()


def test_without_a_broker_a_busy_group_keeps_its_answer_and_an_idle_one_is_unknown(fleet: Fleet) -> None:
    fleet.settle()
    fleet.broker.kill()
    polled = fleet.endure(OUTAGE)
    assert "stale" in polled[-1].error or "old" in polled[-1].error, polled[-1].error
    fleet.broker.start()
    fleet.settle()


def test_a_database_outage_fails_health_but_not_readiness(fleet: Fleet) -> None:
    fleet.settle()
    http = f"http://{fleet.system.stack.addresses.scaler_http}"
    assert httpx.get(f"{http}/healthz").status_code == httpx.codes.OK
    assert _grpc_health(fleet) == health_pb2.HealthCheckResponse.SERVING

    fleet.database.kill()
    fleet.endure(OUTAGE)
    wait_until(lambda: httpx.get(f"{http}/healthz").status_code == httpx.codes.SERVICE_UNAVAILABLE, 30, "healthz")
    wait_until(lambda: _grpc_health(fleet) == health_pb2.HealthCheckResponse.NOT_SERVING, 30, "gRPC health")
    assert httpx.get(f"{http}/readyz").status_code == httpx.codes.OK
    assert httpx.get(f"{http}/livez").status_code == httpx.codes.OK
    assert httpx.get(f"{http}/healthz").headers["content-type"].startswith("application/json")

    fleet.database.start()
    fleet.settle()
    wait_until(lambda: is_ready(f"{http}/healthz"), 30, "healthz did not come back")
    wait_until(lambda: _grpc_health(fleet) == health_pb2.HealthCheckResponse.SERVING, 30, "gRPC health")


def test_calls_are_bounded_while_the_database_hangs(fleet: Fleet) -> None:
    fleet.settle()
    fleet.database.pause()
    try:
        fleet.endure(OUTAGE / 2)
    finally:
        fleet.database.resume()
    fleet.settle()


def test_a_scaler_that_restarts_during_a_database_outage_has_its_registrations(fleet: Fleet) -> None:
    fleet.settle()
    fleet.await_saved()
    fleet.database.kill()
    stack = fleet.system.stack
    stack.servers["scaler"].kill()
    stack.spawn("scaler")
    stack.await_ready("scaler")
    _await_answer(fleet.idle, lambda answer: answer.error.startswith("UNAVAILABLE"))
    assert fleet.idle.keda.specs() == {fleet.idle.monitor: 500.0}
    assert is_active_with(1_500.0)(fleet.busy.poll()), "the last-known answer is in the local cache"
    fleet.database.start()
    fleet.settle()


def test_a_scraper_that_was_killed_recovers(fleet: Fleet) -> None:
    fleet.settle()
    stack = fleet.system.stack
    stack.servers["scraper"].kill()
    fleet.endure(OUTAGE)
    stack.spawn("scraper")
    stack.await_ready("scraper")
    fleet.settle()


def test_concurrent_outages_never_lead_to_a_zero(fleet: Fleet) -> None:
    fleet.settle()
    stack = fleet.system.stack
    stack.servers["scraper"].kill()
    fleet.broker.kill()
    fleet.database.kill()
    fleet.endure(OUTAGE / 2)
    fleet.database.start()
    fleet.endure(OUTAGE / 2)
    fleet.broker.start()
    stack.spawn("scraper")
    stack.await_ready("scraper")
    fleet.settle()


def _await_answer(group: Group, condition: Callable[[KedaAnswer], bool]) -> None:
    until(group.poll, condition, 60)


def _grpc_health(fleet: Fleet) -> int:
    with grpc.insecure_channel(fleet.system.stack.addresses.grpc) as channel:
        return int(health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=5).status)
