"""The main scenarios: bursts, spikes, scaling to zero and back, over gRPC as KEDA calls it.

All times are shortened by a factor of 10: sampling 1 s for 10 s, sustain 12 s for 120 s.
"""

from __future__ import annotations

import time

import pytest

from devstack.clients import KedaAnswer
from tests.e2e.system import FACTOR, System, is_active_with, is_calm, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SUSTAIN = 120 // FACTOR
POLICY = {"lagThreshold": 500, "sustainSeconds": SUSTAIN, "samplingInterval": 10 // FACTOR, "windowSize": 30}


def requests_replicas(answer: KedaAnswer) -> bool:
    return answer.value is not None and answer.value > 0


def test_a_burst_that_nobody_reads_scales_after_the_sustain_time_until_it_is_consumed(
    system: System,
) -> None:
    burst = system.watch(POLICY, topic="test-topic", group="sample-consumer-group")
    assert burst.keda.specs() == {burst.monitor: 500.0}
    until(burst.poll, is_calm, 60, never=requests_replicas)

    started = time.monotonic()
    system.kafka.produce("test-topic", 5_000, 3)
    polled = until(burst.poll, is_active_with(1_500.0), 60)

    assert time.monotonic() - started >= SUSTAIN
    assert all(is_calm(answer) for answer in polled[:-1]), polled
    assert system.verdict(burst)["total"] == 5_000
    system.kafka.consume_all("test-topic", "sample-consumer-group")
    until(burst.poll, lambda answer: answer == KedaAnswer(0.0, True), 30)
    until(burst.poll, is_calm, 60, never=requests_replicas)


def test_idle_consumers_when_they_are_allowed_lift_the_cap(system: System) -> None:
    burst = system.watch(POLICY | {"allowIdleConsumers": "true"})
    system.kafka.produce(burst.topic, 5_000, 3)
    until(burst.poll, is_active_with(5_000.0), 90)


def test_a_spike_that_is_read_before_the_sustain_time_is_over_scales_nothing(system: System) -> None:
    spike = system.watch(POLICY)
    until(spike.poll, is_calm, 60, never=requests_replicas)
    started = time.monotonic()
    system.kafka.produce(spike.topic, 5_000, 3)

    def above(answer: KedaAnswer) -> bool:
        island = system.verdict(spike)["island"]
        return answer.value == 0 and island is not None and island["durationSeconds"] >= SUSTAIN / 3

    until(spike.poll, above, 30, never=requests_replicas)
    system.kafka.consume_all(spike.topic, spike.group)
    working = until(spike.poll, lambda answer: bool(answer.active), 30, never=requests_replicas)
    assert working[-1] == KedaAnswer(0.0, True)
    until(
        spike.poll,
        lambda answer: is_calm(answer) and time.monotonic() > started + 2 * SUSTAIN,
        60,
        never=requests_replicas,
    )


def test_a_group_at_zero_is_activated_by_waiting_messages_until_they_are_read(system: System) -> None:
    policy = {"lagThreshold": 10, "samplingInterval": 1, "activationSustainSeconds": 3, "sustainSeconds": 3}
    idle = system.watch(policy)
    until(idle.poll, is_calm, 60, never=lambda answer: bool(answer.active))

    system.kafka.produce(idle.topic, 15, 3)
    polled = until(idle.poll, lambda answer: bool(answer.active), 30)
    assert is_calm(polled[0]), "it was activated at the first sample, not after activationSustainSeconds"
    system.kafka.consume_all(idle.topic, idle.group)
    until(idle.poll, is_calm, 30)

    # Activation does not depend on lagThreshold: one message that is never read is enough.
    system.kafka.produce(idle.topic, 1, 3)
    until(idle.poll, lambda answer: answer == KedaAnswer(0.0, True), 30)


def test_a_group_without_commits_follows_its_reset_policy_and_is_activated(system: System) -> None:
    policy = {"lagThreshold": 10, "samplingInterval": 1, "activationSustainSeconds": 2, "sustainSeconds": 2}
    earliest = system.watch(policy | {"offsetResetPolicy": "earliest"}, committed=False)
    latest = system.watch(policy, committed=False)
    for group in (earliest, latest):
        system.kafka.produce(group.topic, 60, 3)

    until(earliest.poll, is_active_with(30.0), 60)
    until(latest.poll, lambda answer: answer == KedaAnswer(0.0, True), 60)
    flags = [one["flags"] for one in system.admin.get(f"{latest.path}/samples?limit=1")["items"][0]["partitions"]]
    assert all("uncommitted" in names for names in flags)
