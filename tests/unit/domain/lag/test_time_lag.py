"""The time lag of a position from the ends of a partition: history 31, and where there is little to go by."""

from __future__ import annotations

import pytest

from lagscale.domain.lag.rounds import TargetRound
from lagscale.domain.lag.samples import Sample
from lagscale.domain.lag.time_lag import NO_WAIT, EndRead, TimeLag, collect_ends, compute_time_lag, select_comparable

STEP = 15_000


def every_step(*ends: int | None, incarnation: int = 0) -> list[EndRead]:
    """One end every 15 s; None where the sample is missing."""
    return [EndRead(n * STEP, end, incarnation=incarnation) for n, end in enumerate(ends) if end is not None]


def test_history_31_fifty_messages_a_second_and_1060_behind_are_21_seconds() -> None:
    ends = [EndRead(at * 1000, 50 * at) for at in range(0, 301, 15)]
    assert compute_time_lag(ends, 15_000 - 1_060) == TimeLag(15_000, 21_200, 30_000)


def test_history_31_everything_read_is_no_time_lag() -> None:
    ends = [EndRead(at * 1000, 50 * at) for at in range(0, 301, 15)]
    assert compute_time_lag(ends, 15_000) == NO_WAIT


def test_history_31_older_than_what_is_stored_is_at_least() -> None:
    ends = [EndRead(at * 1000, 50 * at) for at in range(100, 401, 15)]
    assert compute_time_lag(ends, 100) == TimeLag(300_000, 300_000, None)


def test_without_an_end_nothing_is_known() -> None:
    assert compute_time_lag([], 5) is None


def test_a_first_sample_with_lag_is_at_least_nothing() -> None:
    assert compute_time_lag(every_step(500), 20) == TimeLag(0, 0, None)


def test_a_first_sample_without_lag_is_none() -> None:
    assert compute_time_lag(every_step(500), 500) == NO_WAIT


def test_a_position_beyond_the_end_waits_for_nothing() -> None:
    assert compute_time_lag(every_step(400, 500), 510) == NO_WAIT


def test_one_message_of_an_idle_topic_ages_though_the_ends_stand_still() -> None:
    ends = every_step(100, 100, 101, 101, 101, 101)
    assert compute_time_lag(ends, 100) == TimeLag(3 * STEP, 4 * STEP, 4 * STEP)
    assert compute_time_lag(ends, 101) == NO_WAIT


def test_of_an_idle_stretch_only_the_last_end_before_the_message_counts() -> None:
    assert compute_time_lag(every_step(*[7] * 100, 8), 7) == TimeLag(0, STEP, STEP)


def test_in_a_burst_the_position_says_how_far_between_the_two_ends() -> None:
    ends = every_step(0, 0, 10_000, 10_000)
    assert compute_time_lag(ends, 2_500) == TimeLag(STEP, STEP + 11_250, 2 * STEP)
    assert compute_time_lag(ends, 9_999) == TimeLag(STEP, STEP + 1, 2 * STEP)


def test_the_first_message_after_an_end_is_not_counted_by_it() -> None:
    ends = every_step(10, 20, 30)
    assert compute_time_lag(ends, 20) == TimeLag(0, STEP, STEP)
    assert compute_time_lag(ends, 19) == TimeLag(STEP, STEP + 1_500, 2 * STEP)


def test_a_hole_makes_the_bounds_as_wide_as_itself() -> None:
    ends = every_step(0, 100, None, None, None, None, 600, 700)
    assert compute_time_lag(ends, 350) == TimeLag(STEP, 3 * STEP + STEP // 2, 6 * STEP)


def test_a_restart_of_the_scraper_forgets_nothing() -> None:
    before = every_step(0, 100, 200)
    after = [EndRead(3_600_000 + n * STEP, 200 + 10 * n) for n in range(3)]
    assert compute_time_lag(before + after, 150) == TimeLag(3_600_000, 3_607_500, 3_600_000 + STEP)
    assert compute_time_lag(before + after, 205) == TimeLag(STEP, STEP + STEP // 2, 2 * STEP)


def test_ends_of_an_earlier_topic_of_the_name_do_not_count() -> None:
    earlier = every_step(0, 5, 10)
    present = [
        EndRead(3 * STEP, 10, incarnation=1),
        EndRead(4 * STEP, 20, incarnation=1),
        EndRead(5 * STEP, 30, incarnation=1),
    ]
    assert list(select_comparable(earlier + present)) == present
    assert compute_time_lag(earlier + present, 4) == TimeLag(2 * STEP, 2 * STEP, None)
    assert compute_time_lag(earlier + present, 15) == TimeLag(STEP, STEP + STEP // 2, 2 * STEP)


def test_ends_before_the_last_fall_do_not_count() -> None:
    ends = every_step(100, 200, 150, 300, 120, 130, 140)
    assert [read.end for read in select_comparable(ends)] == [120, 130, 140]
    assert compute_time_lag(ends, 110) == TimeLag(2 * STEP, 2 * STEP, None)
    assert compute_time_lag(ends, 125) == TimeLag(STEP, STEP + STEP // 2, 2 * STEP)


def test_ends_are_known_from_their_question_to_their_answer() -> None:
    ends = [EndRead(0, 0, 100, 300), EndRead(10_000, 100, 40, 50), EndRead(20_000, 200, 10, 2_000)]
    # Between 200 ms and 10,045 ms, the middles of the requests.
    assert compute_time_lag(ends, 50) == TimeLag(20_000 - 10_050, 14_877, 20_000 - 100)


def test_a_message_of_the_round_itself_may_be_younger_than_its_stamp() -> None:
    ends = [EndRead(0, 10, 5, 9), EndRead(10_000, 20, 500, 1_500)]
    assert compute_time_lag(ends, 19) == TimeLag(0, 99, 9_995)


def test_the_estimate_is_never_negative() -> None:
    ends = [EndRead(0, 10), EndRead(1_000, 20, 500, 1_900)]
    assert compute_time_lag(ends, 19) == TimeLag(0, 0, 1_000)


def test_an_end_asked_for_after_the_next_stamp_leaves_no_upper_bound_below_the_lower() -> None:
    ends = [EndRead(0, 10, 1_500, 1_600), EndRead(1_000, 20, 700, 800)]
    assert compute_time_lag(ends, 15) == NO_WAIT


@pytest.mark.parametrize("messages", [1, 3, 7, 10**9])
def test_the_estimate_is_rounded_down(messages: int) -> None:
    ends = [EndRead(0, 0), EndRead(1_000, messages), EndRead(1_001, messages)]
    for position in {0, messages // 2, messages - 1}:
        found = compute_time_lag(ends, position)
        assert found is not None
        assert found.estimate_ms == 1 + 1_000 * (messages - position) // messages


def test_the_ends_of_a_partition_are_those_of_the_rounds_that_have_it() -> None:
    rounds = [
        TargetRound(0, 1, (Sample(0, 5),)),
        TargetRound(1_000, 1, (Sample(0, 6), Sample(1, 90)), ends_asked_ms=4, ends_answered_ms=9),
        TargetRound(2_000, 1, (Sample(0, 7), None), ends_asked_ms=4, ends_answered_ms=9),
        TargetRound(3_000, 2, (Sample(0, 8), Sample(2, 3)), ends_asked_ms=0, ends_answered_ms=1),
    ]
    assert collect_ends(rounds, 1) == [EndRead(1_000, 90, 4, 9, 1), EndRead(3_000, 3, 0, 1, 2)]
    assert collect_ends(rounds, 0)[0] == EndRead(0, 5, 0, 0, 1)
