"""KEDA's `kafka` trigger from samples, faults included, and what the HPA makes of answers."""

from __future__ import annotations

import pytest

from lagscale.domain.explain.keda_kafka import KafkaTrigger, KafkaTriggerAnswer, simulate_kafka_trigger
from lagscale.domain.explain.replicas import TimedAnswer, Workload, simulate_replicas
from lagscale.domain.lag.rounds import TargetRound
from lagscale.domain.lag.samples import Flag, Offsets, Sample, build_sample
from lagscale.domain.policy.policy import OffsetResetPolicy

EARLIEST = OffsetResetPolicy.EARLIEST


def answered(*samples: Sample | None, excluded: frozenset[int] = frozenset(), **keys: object) -> KafkaTriggerAnswer:
    this = TargetRound(0, 0, samples, excluded=excluded)
    return simulate_kafka_trigger({1: this}, KafkaTrigger(**keys), {})  # type: ignore[arg-type]


def with_lag(*lags: int) -> tuple[Sample, ...]:
    return tuple(Sample(lag, 10_000) for lag in lags)


def test_the_value_is_the_total_and_activity_is_strictly_above_its_threshold() -> None:
    answer = answered(*with_lag(3, 4, 0), activation_lag_threshold=7)
    assert (answer.value, answer.active) == (7, False)
    assert answered(*with_lag(3, 4, 1), activation_lag_threshold=7).active


def test_the_cap_rounds_down_so_one_replica_more_than_partitions_can_be_asked_for() -> None:
    lags = with_lag(6, 6, 6, 6, 5)
    assert answered(*lags, lag_threshold=5).value == 29
    assert answered(*lags, lag_threshold=4).value == 20
    assert answered(*lags, lag_threshold=4, allow_idle_consumers=True).value == 29


def test_only_partitions_with_lag_count_where_that_is_the_limit() -> None:
    assert answered(*with_lag(100, 0, 0), lag_threshold=10, limit_to_partitions_with_lag=True).value == 10
    assert answered(*with_lag(100, 100, 0), lag_threshold=10, limit_to_partitions_with_lag=True).value == 20


@pytest.mark.parametrize(("lag", "value"), [(0, 10), (10, 10), (11, 20), (25, 30), (35, 60), (1_000, 60)])
def test_an_even_split_takes_the_next_divisor_of_the_partitions(lag: int, value: int) -> None:
    assert (
        answered(*with_lag(lag, 0, 0, 0, 0, 0), lag_threshold=10, ensure_even_distribution_of_partitions=True).value
        == value
    )


@pytest.mark.parametrize(
    ("policy", "to_zero", "lag"),
    [(None, False, 1), (None, True, 0), (EARLIEST, False, 900), (EARLIEST, True, 0)],
)
def test_a_partition_without_a_commit(policy: OffsetResetPolicy | None, to_zero: bool, lag: int) -> None:
    # 800 of 900 records are deleted: `earliest` counts them all the same.
    sample = build_sample(Offsets(start=800, end=900, committed=None, high=900), None)
    keys = {} if policy is None else {"offset_reset_policy": policy}
    answer = answered(sample, lag_threshold=1_000, scale_to_zero_on_invalid_offset=to_zero, **keys)
    assert (answer.value, answer.active) == (lag, lag > 0)


def test_a_commit_below_the_log_start_is_lag_though_it_cannot_be_read() -> None:
    sample = build_sample(Offsets(start=500, end=600, committed=100, high=600), None)
    assert (sample.lag, sample.lost) == (100, 400)
    assert answered(sample, lag_threshold=1_000).value == 500


def test_a_missing_partition_counts_nothing_and_one_outside_is_no_partition() -> None:
    assert answered(*with_lag(50), None, lag_threshold=10, allow_idle_consumers=True).value == 50
    assert answered(*with_lag(50), None, lag_threshold=10).value == 20
    assert answered(*with_lag(50), None, lag_threshold=10, excluded=frozenset({1})).value == 10


def test_a_commit_beyond_the_end_is_told_of() -> None:
    reset = Sample(40, 40, Flag.UNCOMMITTED | Flag.RESET | Flag.RESET_BEGINS)
    answer = answered(reset, *with_lag(5), lag_threshold=10)
    assert (answer.value, answer.beyond_end) == (5, 1)


def test_persistent_lag_is_left_out_of_the_value_from_the_second_call_on() -> None:
    trigger = KafkaTrigger(lag_threshold=1_000, exclude_persistent_lag=True)
    first = simulate_kafka_trigger({1: TargetRound(0, 0, with_lag(30, 50))}, trigger, {})
    assert first.value == 80
    moved = (Sample(30, 10_000), Sample(45, 10_000))
    second = simulate_kafka_trigger({1: TargetRound(1, 0, moved)}, trigger, first.commits)
    assert (second.value, second.active) == (45, True)
    assert simulate_kafka_trigger({1: TargetRound(2, 0, moved)}, trigger, {}).value == 75


def replicas(*answers: tuple[int, float | None, bool | None], least: int = 0, most: int = 10) -> tuple[int, ...]:
    found = simulate_replicas(
        [TimedAnswer(at * 1_000, value, active) for at, value, active in answers], Workload(10, least, most)
    )
    return found.replicas


def test_replicas_follow_the_value_between_the_limits() -> None:
    assert replicas((0, 25, True), (60, 55, True), (120, 999, True)) == (3, 6, 10)
    assert replicas((0, 0, False), (60, 0, False), least=2) == (2, 2)


def test_within_a_tenth_of_the_target_nothing_changes() -> None:
    assert replicas((0, 50, True), (60, 55, True), (120, 56, True)) == (5, 5, 6)


def test_fewer_replicas_only_after_the_window() -> None:
    assert replicas((0, 50, True), (60, 10, True), (299, 10, True), (300, 10, True)) == (5, 5, 5, 1)


def test_to_zero_only_after_the_cooldown_and_back_at_once() -> None:
    found = replicas((0, 20, True), (60, 0, False), (299, 0, False), (300, 0, False), (310, 0, False), (320, 30, True))
    assert found == (2, 2, 2, 0, 0, 3)


def test_an_error_changes_nothing() -> None:
    assert replicas((0, None, None), (60, 30, True), (120, None, None), (900, None, None)) == (0, 3, 3, 3)


def test_events_are_changes() -> None:
    answers = [
        TimedAnswer(0, 10.0, True),
        TimedAnswer(1, 30.0, True),
        TimedAnswer(2, 30.0, True),
        TimedAnswer(3, 90.0, True),
    ]
    assert simulate_replicas(answers, Workload(10, 1, 10)).events == 2
