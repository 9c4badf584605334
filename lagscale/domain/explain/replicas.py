"""What KEDA and the HPA make of answers: a number of replicas over time. A model with their defaults; pure.

Left out: how fast the HPA may scale out (its default doubles every 15 s), and how long pods take to start.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from lagscale.domain.policy.policy import HPA_WINDOW_MS

#: No change within this share of the target.
TOLERANCE = Fraction(1, 10)
#: KEDA's default `cooldownPeriod`.
KEDA_COOLDOWN_MS = 300_000


@dataclass(frozen=True, slots=True)
class TimedAnswer:
    """An answer at an instant; both None mean an error, or nothing to tell."""

    at_ms: int
    value: float | None
    active: bool | None


@dataclass(frozen=True, slots=True)
class Workload:
    """What is scaled.

    Attributes:
        target: the metric's target for one replica (AverageValue).
        min_replicas, max_replicas: minReplicaCount and maxReplicaCount.
        cooldown_ms: KEDA goes to zero so long after the last active answer.
    """

    target: float
    min_replicas: int
    max_replicas: int
    cooldown_ms: int = KEDA_COOLDOWN_MS

    def compute_replicas(self, value: float) -> int:
        """Replicas for a value, between 1 (or the minimum) and the maximum."""
        return min(self.max_replicas, max(1, self.min_replicas, math.ceil(value / self.target)))


@dataclass(frozen=True, slots=True)
class ReplicaSeries:
    """Replicas after each answer, and how often they changed."""

    replicas: tuple[int, ...]

    @property
    def events(self) -> int:
        """How often the number changed."""
        return sum(before != after for before, after in zip(self.replicas, self.replicas[1:], strict=False))


def simulate_replicas(answers: Sequence[TimedAnswer], workload: Workload) -> ReplicaSeries:
    """Follow answers, the oldest first.

    1. It begins with what the first known answer wants; before that, with the minimum.
    2. An error changes nothing.
    3. Active at zero: one replica at once, and the HPA from there. Inactive at a minimum of zero, for `cooldown_ms`
       since the last active answer: none.
    4. Else ceil(value / target), within the limits, but no change within 10 % of the present number, and down only to
       the most that was wanted within 300 s.
    """
    counts: list[int] = []
    present: int | None = None
    last_active: int | None = None
    desired: list[tuple[int, int]] = []
    for answer in answers:
        if answer.value is None or answer.active is None:
            counts.append(workload.min_replicas if present is None else present)
            continue
        if answer.active or last_active is None:
            last_active = answer.at_ms
        if present is None:
            present = workload.compute_replicas(answer.value) if answer.active or workload.min_replicas else 0
        elif present == 0:
            present = 1 if answer.active else 0
        elif workload.min_replicas == 0 and not answer.active and answer.at_ms - last_active >= workload.cooldown_ms:
            present, desired = 0, []
        if present:
            within_tolerance = abs(Fraction(answer.value) - Fraction(workload.target) * present) <= (
                TOLERANCE * Fraction(workload.target) * present
            )
            desired.append((answer.at_ms, present if within_tolerance else workload.compute_replicas(answer.value)))
            desired = [(at, number) for at, number in desired if at > answer.at_ms - HPA_WINDOW_MS]
            newest = desired[-1][1]
            present = max(newest, min(present, max(number for _, number in desired)))
        counts.append(present)
    return ReplicaSeries(tuple(counts))
