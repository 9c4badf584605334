"""Steps of the demo: each acts, then polls until the expected result, or until its timeout."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import grpc

from devstack.clients import Admin, Kafka, KedaAnswer, KedaClient
from devstack.demo.screen import Screen

TENANT, CLUSTER, MONITOR, NAMESPACE = "demo", "local", "orders", "demo"
TOPIC, GROUP, PARTITIONS = "orders", "order-workers", 3
SUSTAIN_SECONDS = 15
THRESHOLD = 500
POLICY = {
    "lagThreshold": THRESHOLD,
    "sustainSeconds": SUSTAIN_SECONDS,
    "samplingInterval": 1,
    "windowSize": 30,
    "workSeconds": 5,
}
SPIKE, BURST = 3_000, 5_000
_POLL_SECONDS = 0.5
_SPIKE_SECONDS = 6.0
Found = TypeVar("Found")


class ExpectationFailed(RuntimeError):
    """The expected result did not come in time, or a forbidden one came."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The verdict over REST and the answers to KEDA over gRPC, read one after the other."""

    verdict: dict[str, Any]
    answer: KedaAnswer


@dataclass(slots=True)
class DemoReport:
    """What happened, when, and how long it took; seconds."""

    steps: list[tuple[str, str, float, float]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def add(self, step: str, condition: str, since: float) -> None:
        """A step that was seen to its end."""
        now = time.monotonic()
        self.steps.append((step, condition, now - self.began, now - since))


class Scenario:
    """Runs the steps in order over a started stack."""

    def __init__(self, admin: Admin, keda: KedaClient, kafka: Kafka, screen: Screen, record: DemoReport) -> None:
        self._admin, self._keda, self._kafka, self._screen, self._record = admin, keda, kafka, screen, record
        self._metric = ""

    def run(self, bootstrap: str) -> None:
        """All steps.

        Raises:
            ExpectationFailed: a step did not show what it must.
        """
        self._register(bootstrap)
        self._calm()
        self._spike()
        self._burst()
        self._drain()

    def _register(self, bootstrap: str) -> None:
        since = time.monotonic()
        self._kafka.create_topic(TOPIC, PARTITIONS)
        self._kafka.consume_all(TOPIC, GROUP)
        self._admin.post("/tenants", {"name": TENANT})
        self._admin.post(f"/tenants/{TENANT}/bindings", {"namespace": NAMESPACE})
        self._admin.post(f"/tenants/{TENANT}/clusters", {"name": CLUSTER, "bootstrapServers": [bootstrap]})
        monitor = {"name": MONITOR, "cluster": CLUSTER, "consumerGroup": GROUP, "topics": [TOPIC], "policy": POLICY}
        self._admin.post(f"/tenants/{TENANT}/monitors", monitor)
        self._screen.event("topic created; tenant, namespace, cluster and monitor registered over REST")
        self._metric, target = self._until(
            "the registration reaches the scaler", 15, self._spec, lambda found: found is not None
        ) or ("", 0.0)
        if target != THRESHOLD:
            raise ExpectationFailed(f"GetMetricSpec gave the target {target:g}, not {THRESHOLD}")
        self._record.add("registered", f"GetMetricSpec: {self._metric}, target {target:g}", since)

    def _calm(self) -> None:
        since = time.monotonic()
        self._watch("No lag. Too little history is unknown, never 0; then the verdict is calm.", 40, _is_calm)
        self._record.add("calm", "measured 0, inactive", since)

    def _spike(self) -> None:
        since = time.monotonic()
        self._screen.event(f"spike: {SPIKE:,} messages, read again after {_SPIKE_SECONDS:.0f} s")
        self._kafka.produce(TOPIC, SPIKE, PARTITIONS)
        step = f"A spike of {SPIKE:,} messages: above the threshold, but not for {SUSTAIN_SECONDS} s. Nothing scales."
        self._watch(step, 20, lambda observation: _span(observation) >= _SPIKE_SECONDS - 1, forbidden=_is_scaling)
        self._screen.event(f"a worker read {self._kafka.consume_all(TOPIC, GROUP):,} messages")
        until = since + SUSTAIN_SECONDS + 3
        self._watch(
            step, 60, lambda observation: time.monotonic() > until and _is_calm(observation), forbidden=_is_scaling
        )
        self._record.add("spike", "value 0 at every call", since)

    def _burst(self) -> None:
        since = time.monotonic()
        self._screen.event(f"burst: {BURST:,} messages, without a consumer")
        self._kafka.produce(TOPIC, BURST, PARTITIONS)
        step = f"A backlog of {BURST:,} messages. It scales when it has lasted {SUSTAIN_SECONDS} s."
        observation = self._watch(
            step,
            60,
            lambda observation: observation.verdict["verdict"] == "sustained" and bool(observation.answer.active),
        )
        lasted, total, value = time.monotonic() - since, observation.verdict["total"], observation.answer.value
        if lasted < SUSTAIN_SECONDS or total != BURST or value != THRESHOLD * 3:
            raise ExpectationFailed(f"sustained after {lasted:.1f} s with a total of {total}, value {value}")
        self._record.add("sustained", f"total {total:,}; value {value:g} (capped: 3 partitions x 500), active", since)

    def _drain(self) -> None:
        since = time.monotonic()
        self._screen.event(f"a worker read {self._kafka.consume_all(TOPIC, GROUP):,} messages")
        self._watch("The backlog is gone: the value is 0, and inactive once workSeconds have passed.", 60, _is_calm)
        self._record.add("drained", "value 0, inactive", since)

    def _spec(self) -> tuple[str, float] | None:
        try:
            return next(iter(self._keda.specs().items()))
        except grpc.RpcError:  # Whatever KEDA would get here, the next look may be answered.
            return None

    def _observe(self, step: str) -> Observation:
        path = f"/tenants/{TENANT}/monitors/{MONITOR}"
        observation = Observation(self._admin.get(f"{path}/verdict"), self._keda.poll(self._metric))
        rounds = self._admin.get(f"{path}/samples?limit=1")["items"]
        self._screen.show(step, rounds[0] if rounds else None, observation.verdict, observation.answer)
        return observation

    def _watch(
        self,
        step: str,
        seconds: float,
        condition: Callable[[Observation], bool],
        *,
        forbidden: Callable[[Observation], bool] = lambda _: False,
    ) -> Observation:
        def allowed() -> Observation:
            observation = self._observe(step)
            if forbidden(observation):
                raise ExpectationFailed(
                    f"{step} But KEDA was answered {observation.answer}: {observation.verdict['sentence']}"
                )
            return observation

        return self._until(step, seconds, allowed, condition)

    def _until(
        self, what: str, seconds: float, observation: Callable[[], Found], condition: Callable[[Found], bool]
    ) -> Found:
        deadline = time.monotonic() + seconds
        while True:
            found = observation()
            if condition(found):
                return found
            if time.monotonic() > deadline:
                raise ExpectationFailed(f"not within {seconds:g} s: {what} Last seen: {found}")
            time.sleep(_POLL_SECONDS)


def _is_calm(observation: Observation) -> bool:
    return observation.verdict["verdict"] == "calm" and observation.answer == KedaAnswer(0.0, False)


def _is_scaling(observation: Observation) -> bool:
    return observation.answer.value is not None and observation.answer.value > 0


def _span(observation: Observation) -> float:
    island = observation.verdict.get("island")
    return float(island["durationSeconds"]) if island else 0.0
