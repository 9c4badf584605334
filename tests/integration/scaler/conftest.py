"""A scaler in this process that listens on loopback, with fake stores that a test controls, called as KEDA calls it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.tenancy import compute_content_hash
from lagscale.domain.verdict.contract import Answer, Judgment, Reason, Verdict, VerdictRequest
from lagscale.errors import LagscaleError
from lagscale.store.connection import open_pool
from lagscale.store.registrations.answers import Decision, FrozenAnswer, FrozenAnswerKey
from lagscale.store.registrations.load import ROLE, InlineMonitor, Registration, Registrations, TenantEntry
from services.scaler.grpc.proto import externalscaler_pb2 as pb
from services.scaler.grpc.proto import externalscaler_pb2_grpc as pb_grpc
from services.scaler.replica import Scaler, ScalerDependencies
from services.scaler.settings import ScalerSettings

NOW_MS = 1_700_000_000_000
DEADLINE = 5.0


def calm(**facts: Any) -> Judgment:
    return Judgment(**{**_FACTS, "verdict": Verdict.CALM, "reason": Reason.NO_BREACH, **facts})


def sustained(value: float, **facts: Any) -> Judgment:
    facts_of_verdict = {
        "verdict": Verdict.SUSTAINED,
        "reason": Reason.LASTED,
        "value": value,
        "active": True,
        "total": int(value),
    }
    return Judgment(**{**_FACTS, **facts_of_verdict, **facts})


def unknown(reason: Reason = Reason.STALE, **facts: Any) -> Judgment:
    facts_of_verdict = {"verdict": Verdict.UNKNOWN, "reason": reason, "value": None, "active": None}
    return Judgment(**{**_FACTS, **facts_of_verdict, **facts})


_FACTS: dict[str, Any] = {"value": 0.0, "active": False, "at_ms": NOW_MS - 4000, "now_ms": NOW_MS, "partitions": 3}


@dataclass
class FakeVerdicts:
    """Returns the judgment that the test sets for each target; can hang or be unavailable."""

    judgments: dict[int, Judgment] = field(default_factory=dict)
    holds: dict[int, Answer] = field(default_factory=dict)
    failure: Exception | None = None
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.gate.set()

    async def judge(self, requests: Sequence[VerdictRequest]) -> list[Judgment]:
        self.asked.append([request.target_ids[0] for request in requests])
        await self._answers()
        return [self.judgments[request.target_ids[0]] for request in requests]

    async def find_last_known(self, request: VerdictRequest, judgment: Judgment) -> Answer | None:
        await self._answers()
        return self.holds.get(request.target_ids[0])

    async def _answers(self) -> None:
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure


@dataclass
class FakeRegistrations:
    """Registrations that a test changes; can be unavailable."""

    present: Registrations
    failure: LagscaleError | None = None
    refusal: LagscaleError | None = None
    registered: list[InlineMonitor] = field(default_factory=list)

    async def version(self) -> int:
        if self.failure is not None:
            raise self.failure
        return self.present.version

    async def load(self) -> Registrations:
        if self.failure is not None:
            raise self.failure
        return self.present

    async def register(self, monitor: InlineMonitor) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.registered.append(monitor)

    def change(self, **facts: Any) -> None:
        self.present = replace(self.present, version=self.present.version + 1, **facts)


@dataclass
class FakeDecisions:
    """Records what was written."""

    rows: list[Decision] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)

    async def append(self, decisions: list[Decision]) -> None:
        self.rows += decisions

    async def mark_asked(self, monitor_ids: list[int]) -> None:
        self.asked += monitor_ids


@dataclass
class FakeFreezes:
    """Stores the answers of frozen monitors for all replicas; can be unavailable."""

    rows: dict[tuple[FrozenAnswerKey, str], FrozenAnswer] = field(default_factory=dict)
    failure: LagscaleError | None = None

    async def find_answer(self, asked: FrozenAnswerKey, freeze_ids: Sequence[str]) -> FrozenAnswer | None:
        if self.failure is not None:
            raise self.failure
        found = [self.rows[asked, name] for name in freeze_ids if (asked, name) in self.rows]
        return min(found, key=lambda one: one.since_ms, default=None)

    async def store_first(
        self, asked: FrozenAnswerKey, freeze_ids: Sequence[str], answer: FrozenAnswer
    ) -> FrozenAnswer:
        if self.failure is not None:
            raise self.failure
        for name in freeze_ids:
            self.rows.setdefault((asked, name), answer)
        return await self.find_answer(asked, freeze_ids) or answer


def monitor(number: int, name: str, *, tenant: int = 1, overridable: bool = False, **given: str) -> Registration:
    """A registration whose only target has the monitor's number."""
    return Registration(
        number, tenant, name, "main", "group", (f"topic-{name}",), parse_policy(given), given, (number,), overridable,
        compute_content_hash("main", "group", [f"topic-{name}"], given), 1,
    )  # fmt: skip


def registrations() -> Registrations:
    acme = TenantEntry(1, "acme", False, 1, 1000, {"main": ("kafka-0:9092",)})
    open_one = TenantEntry(2, "open", True, 1, 1000, {"main": ("kafka-5:9092",)})
    monitors = (
        monitor(1, "ingest-logs", lagThreshold="500"),
        monitor(2, "ingest-metrics", targetLag="0.4"),
        monitor(3, "secret-logs", tenant=2),
    )
    return Registrations(1, (acme, open_one), monitors, {("default", "shop"): 1, ("default", "market"): 2})


@dataclass
class World:
    """A running scaler with its stores and a client."""

    verdicts: FakeVerdicts
    registry: FakeRegistrations
    decisions: FakeDecisions
    freezes: FakeFreezes
    notifications: asyncio.Queue[str]
    scaler: Scaler
    stub: Any
    channel: Any
    http: int

    def ref(self, service: str = "ingest-logs", namespace: str = "shop", **metadata: str) -> Any:
        given = {"scalerAddress": "scaler:50051", **({"serviceType": service} if service else {}), **metadata}
        return pb.ScaledObjectRef(name="worker", namespace=namespace, scalerMetadata=given)

    async def metric(self, name: str = "s0-ingest-logs", **metadata: str) -> Any:
        ref = self.ref(**metadata)
        return await self.stub.GetMetrics(pb.GetMetricsRequest(scaledObjectRef=ref, metricName=name), timeout=DEADLINE)

    async def active(self, **metadata: str) -> bool:
        return bool((await self.stub.IsActive(self.ref(**metadata), timeout=DEADLINE)).result)


Starting = Callable[..., Awaitable[World]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Starting]:
    """Starts scalers; those of one test share their local cache, as after a restart."""
    async with AsyncExitStack() as stack:

        async def starting(**settings: Any) -> World:
            facts = {
                "database_url": "postgresql://nowhere/none", "cache_dir": tmp_path, "scaler_pool_size": 2,
                "scaler_drain_seconds": 0, "scaler_http_listen": "127.0.0.1:0", "scaler_snapshot_ttl_seconds": 0.05, **settings,
            }  # fmt: skip
            verdicts, registry, decisions = FakeVerdicts(), FakeRegistrations(registrations()), FakeDecisions()
            registry.failure = facts.pop("registry_failure", None)
            credentials = facts.pop("credentials", None)
            notifications: asyncio.Queue[str] = asyncio.Queue()

            async def notified() -> AsyncIterator[str]:
                while True:
                    yield await notifications.get()

            freezes = facts.pop("freezes", None) or FakeFreezes()
            dependencies = ScalerDependencies(verdicts, registry, decisions, freezes, notified)
            scaler = Scaler(dependencies, ScalerSettings(**facts), "replica-1")
            port, http = await scaler.start("127.0.0.1:0")
            stack.push_async_callback(scaler.stop)
            # gRPC shares connections to one address; tests must not.
            channel = await stack.enter_async_context(channel_to(port, credentials))
            await channel.channel_ready()
            if registry.failure is None:
                await eventually(lambda: scaler._registrations.directory is not None)
            stub = pb_grpc.ExternalScalerStub(channel)
            return World(verdicts, registry, decisions, freezes, notifications, scaler, stub, channel, http)

        yield starting


def channel_to(port: int, credentials: Any = None) -> Any:
    """A new connection to a port of loopback; plain text without credentials."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    if credentials is None:
        return grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options)
    return grpc.aio.secure_channel(f"localhost:{port}", credentials, options=options)


async def eventually(condition: Callable[[], bool], seconds: float = DEADLINE) -> None:
    """Wait until a condition is met; fail if it is not in time."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - conditions of all kinds, without an event of their own
            await asyncio.sleep(0.01)


@pytest.fixture
async def pool(shared_url: str) -> AsyncIterator[Any]:
    """A pool of the real database under the scaler's role."""
    pool = open_pool(shared_url, ROLE, 4, application="test-scaler")
    await pool.open(wait=True)
    yield pool
    await pool.close()


@pytest.fixture
def say() -> Any:
    """Builders of judgments and monitors, waiting for a condition, and further connections."""
    return SimpleNamespace(
        calm=calm,
        sustained=sustained,
        unknown=unknown,
        eventually=eventually,
        monitor=monitor,
        now_ms=NOW_MS,
        channel_to=channel_to,
    )
