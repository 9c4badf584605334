"""The answers of KEDA's own `kafka` trigger, bugs included, from samples as Lagscale stores them.

As of KEDA 2.20. Samples do not show how far a commit lies beyond the end (such a partition counts 0 here, and less in
KEDA), nor other topics of the cluster. Comparisons use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lagscale.domain.lag.rounds import TargetRound
from lagscale.domain.lag.samples import Flag, Sample
from lagscale.domain.policy.keda_keys import KEDA_KEYS
from lagscale.domain.policy.policy import OffsetResetPolicy
from lagscale.domain.verdict.value import divide_evenly

#: (target id, partition) -> committed offset, as the trigger remembers it between two calls.
Commits = Mapping[tuple[int, int], int]


@dataclass(frozen=True, slots=True)
class KafkaTrigger:
    """The keys of the trigger that decide its answer, under KEDA's names and with KEDA's defaults."""

    lag_threshold: int = int(KEDA_KEYS["lagThreshold"].default)
    activation_lag_threshold: int = int(KEDA_KEYS["activationLagThreshold"].default)
    offset_reset_policy: OffsetResetPolicy = OffsetResetPolicy(KEDA_KEYS["offsetResetPolicy"].default)
    scale_to_zero_on_invalid_offset: bool = False
    allow_idle_consumers: bool = False
    limit_to_partitions_with_lag: bool = False
    ensure_even_distribution_of_partitions: bool = False
    exclude_persistent_lag: bool = False


@dataclass(frozen=True, slots=True)
class KafkaTriggerAnswer:
    """One call's answer.

    Attributes:
        value: the metric's value, after the caps; messages.
        active: the lag, without caps and persistent lag included, is above `activationLagThreshold`.
        commits: what the next call compares with.
        beyond_end: partitions whose commit lies beyond the end: KEDA's value is smaller than the one here.
    """

    value: int
    active: bool
    commits: Commits
    beyond_end: int = 0


def simulate_kafka_trigger(
    rounds: Mapping[int, TargetRound], trigger: KafkaTrigger, before: Commits
) -> KafkaTriggerAnswer:
    """The trigger's answer to one call.

    Args:
        rounds: target id -> its newest round.
        trigger: its keys.
        before: `commits` of the previous call; empty at the first one, and after an error or restart.
    """
    total, with_persistent, lagging, partitions, beyond_end = 0, 0, 0, 0, 0
    commits = dict(before)
    for target, this in rounds.items():
        for number, sample in enumerate(this.samples):
            if number in this.excluded:
                continue
            partitions += 1
            if sample is None:
                continue  # Missing from an answer counts 0.
            beyond_end += bool(sample.flags & Flag.RESET)
            lag, persistent = _compute_lag(sample, trigger, (target, number), commits)
            total += lag
            with_persistent += persistent
            lagging += lag > 0
    value = _cap_value(total, partitions, lagging, trigger)
    return KafkaTriggerAnswer(value, with_persistent > trigger.activation_lag_threshold, commits, beyond_end)


def _compute_lag(
    sample: Sample, trigger: KafkaTrigger, name: tuple[int, int], commits: dict[tuple[int, int], int]
) -> tuple[int, int]:
    """Lag of a partition for the value, and for activity.

    1. A commit beyond the end gives a lag below 0 in KEDA; how far is not stored, so it is 0 here.
    2. Without a commit, `latest`: 1, or 0 with `scaleToZeroOnInvalidOffset`.
    3. Without a commit, `earliest`: the whole end offset, deleted records included, or 0 with that key.
    4. With one: end minus commit, even if the commit is below the log start.
    5. `excludePersistentLag`: 0 for the value when the commit equals that of the previous call.
    """
    if sample.flags & Flag.RESET:
        return 0, 0
    if sample.flags & Flag.UNCOMMITTED:
        if trigger.offset_reset_policy is OffsetResetPolicy.EARLIEST:
            lag = 0 if trigger.scale_to_zero_on_invalid_offset else sample.end
        else:
            lag = 0 if trigger.scale_to_zero_on_invalid_offset else 1
        return lag, lag
    lag, commit = sample.lag + sample.lost, sample.position - sample.lost
    if trigger.exclude_persistent_lag:
        if commits.get(name) == commit:
            return 0, lag
        commits[name] = commit
    return lag, lag


def _cap_value(total: int, partitions: int, lagging: int, trigger: KafkaTrigger) -> int:
    """The value after the caps, which divide by floor: one replica more than the cap can be asked for."""
    even_split = trigger.ensure_even_distribution_of_partitions
    if trigger.allow_idle_consumers and not trigger.limit_to_partitions_with_lag and not even_split:
        return total
    if even_split and partitions:
        total = divide_evenly(-(-total // trigger.lag_threshold), partitions) * trigger.lag_threshold
    cap = lagging if trigger.limit_to_partitions_with_lag else partitions
    return cap * trigger.lag_threshold if total // trigger.lag_threshold > cap else total
