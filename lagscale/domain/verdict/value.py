"""The value of a sustained monitor, rule by rule, before stabilization; and whether a backlog is recovering.

The reference of the verdict uses these functions, and explanations show the steps; the SQL of the store computes the
same value on its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from lagscale.domain.policy.policy import Policy

#: Fewer samples determine no line.
RECOVERY_MIN_SAMPLES: Final = 3


class ValueRule(StrEnum):
    """Rules that may change a value, in the order in which they apply."""

    ACTIVE_VALUE = "active_value"  # calm and active
    STUCK = "stuck"  # stuck partitions are excluded
    EVEN_SPLIT = "even_split"  # replicas divide the partitions
    REPLICA_CAP = "replica_cap"  # at most as many replicas as can have a partition
    LAGGING_CAP = "lagging_cap"  # at most as many replicas as partitions with lag need
    RECOVERING = "recovering"  # the backlog is recovering: at most the current replicas
    FLOOR = "floor"  # a partition is not fresh: at least the current replicas
    SCALE_UP = "scale_up"  # the least value of scaleUpStabilization
    SCALE_DOWN = "scale_down"  # the greatest value of scaleDownStabilization


@dataclass(frozen=True, slots=True)
class ValueStep:
    """One rule that changed the value, and the value after it."""

    rule: ValueRule
    value: float


@dataclass(frozen=True, slots=True)
class Load:
    """The input of the value of a sustained monitor.

    Attributes:
        amount_milli: thousandths of the messages of the fresh partitions that count, or of the seconds for all replicas.
        partitions: in scope.
        lagging: of these, with fresh lag above 0.
        recovering: whether every sustained backlog reaches the threshold within `drainSeconds`.
        members: None when unknown.
        incomplete: a partition or a target is not fresh.
    """

    amount_milli: int
    partitions: int
    lagging: int
    recovering: bool
    members: int | None
    incomplete: bool


def compute_steps(load: Load, policy: Policy) -> list[ValueStep]:
    """The rules that change the value before stabilization, in order; without a change it is the amount.

    In whole thousandths, because a target such as 0.7 is no binary fraction, and a rounded product asks for one replica
    more or less.

    1. *Even split*: as many replicas as the smallest divisor of those that can have partitions, and enough of them.
    2. *Replica cap* unless idle consumers are allowed: at most ceil(partitions / consumersPerReplica).
    3. *Lagging cap*: at most as many as the partitions with lag need.
    4. *Recovering*: at most the current replicas, at least one.
    5. *Floor* with a partition that is not fresh: at least the current replicas.
    """
    target = policy.target_milli
    most = count_replicas(load.partitions, policy)
    value_milli = load.amount_milli
    made: list[ValueStep] = []

    def apply_rule(rule: ValueRule, limited: Callable[[int], int]) -> None:
        nonlocal value_milli
        before, value_milli = value_milli, limited(value_milli)
        if value_milli != before:
            made.append(ValueStep(rule, value_milli / 1000))

    if policy.even_split:
        apply_rule(ValueRule.EVEN_SPLIT, lambda value: divide_evenly(-(-value // target), most) * target)
    if not policy.allow_idle_consumers:
        apply_rule(ValueRule.REPLICA_CAP, lambda value: min(value, most * target))
    if policy.limit_to_lagging:
        apply_rule(ValueRule.LAGGING_CAP, lambda value: min(value, count_replicas(load.lagging, policy) * target))
    if load.members is not None:
        present = count_replicas(load.members, policy)
        if load.recovering:
            apply_rule(ValueRule.RECOVERING, lambda value: min(value, max(1, present) * target))
        if load.incomplete:
            apply_rule(ValueRule.FLOOR, lambda value: max(value, present * target))
    return made


def compute_value(load: Load, policy: Policy) -> float:
    """The value after all steps."""
    made = compute_steps(load, policy)
    return made[-1].value if made else load.amount_milli / 1000


def get_calm_value(policy: Policy, *, active: bool) -> float:
    """The value of a calm monitor."""
    return policy.active_value if active else 0.0


def count_replicas(consumers: int, policy: Policy) -> int:
    """How many replicas hold so many consumers, or read so many partitions."""
    return math.ceil(consumers / policy.consumers_per_replica)


def compute_worth(members: int, policy: Policy) -> float:
    """The value that asks for exactly the replicas of these members."""
    return count_replicas(members, policy) * policy.target_milli / 1000


def divide_evenly(needed: int, most: int) -> int:
    """The smallest divisor of `most` that is at least `needed`; `most` without one."""
    return next((replicas for replicas in range(1, most + 1) if most % replicas == 0 and replicas >= needed), most)


def will_recover(
    samples: Sequence[tuple[int, int]], at_ms: int, level: int, *, sustain_ms: int, within_ms: int
) -> bool:
    """Whether the least-squares line falls and is at the level, or below it, `within_ms` after `at_ms`.

    The line starts at the highest sample, of equal ones the latest: the rise of a burst or a pause is no part of it. In
    whole numbers, so that every engine draws the same line.

    Args:
        samples: (time in milliseconds, messages) of the last `sustainSeconds`, oldest first. From the highest one on, fewer
            than `RECOVERY_MIN_SAMPLES`, or less than a quarter of `sustainSeconds`, determine nothing.
        at_ms: T.
        level: messages.
        sustain_ms: `sustainSeconds`.
        within_ms: `drainSeconds`.
    """
    peak = max(range(len(samples)), key=lambda number: (samples[number][1], number), default=0)
    samples = samples[peak:]
    count = len(samples)
    if count < RECOVERY_MIN_SAMPLES or 4 * (samples[-1][0] - samples[0][0]) < sustain_ms:
        return False
    times = [time_ms - at_ms for time_ms, _ in samples]
    lags = [lag for _, lag in samples]
    sum_t, sum_lag = sum(times), sum(lags)
    # Slope and height as fractions over one positive denominator.
    spread = count * sum(t * t for t in times) - sum_t * sum_t
    slope = count * sum(t * lag for t, lag in zip(times, lags, strict=True)) - sum_t * sum_lag
    return slope < 0 and sum_lag * spread + slope * (count * within_ms - sum_t) <= level * count * spread
