"""States of partitions by their numbered rules, the state of the group, stuck and hot partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from lagscale.domain.group_status.rules import (
    GroupStatus,
    PartitionStatus,
    Status,
    StatusRule,
    compute_lookback_ms,
    compute_window_ms,
    evaluate_group_status,
    find_worst_status,
)
from lagscale.domain.lag.rounds import Note, TargetRound
from lagscale.domain.lag.samples import Flag, Sample
from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.policy.policy import Policy
from lagscale.domain.wording.group_status import describe_group, describe_partition

STEP = 10_000
#: Samples that span the window of 120 s.
FULL = 13
POLICY = parse_policy({"lagThreshold": "100"})
EARLIEST = parse_policy({"lagThreshold": "100", "offsetResetPolicy": "earliest"})

Pair = tuple[int, int] | Sample | None


def rounds(*columns: Sequence[Pair], members: int | None = 1) -> list[TargetRound]:
    """Rounds every 10 s of partitions as (position, end), or a sample, or None where it is missing."""
    return [
        TargetRound(
            number * STEP,
            0,
            tuple(Sample(end_of(pair), pair[1]) if isinstance(pair, tuple) else pair for pair in pairs),
            members=members,
            members_age_ms=None if members is None else 0,
        )
        for number, pairs in enumerate(zip(*columns, strict=True))
    ]


def end_of(pair: tuple[int, int]) -> int:
    return pair[1] - pair[0]


def only(found: GroupStatus) -> PartitionStatus:
    [one] = found.partitions
    return one


def told(column: Sequence[Pair], policy: Policy = POLICY, members: int | None = 1, late_ms: int = 0) -> PartitionStatus:
    return only(evaluate_group_status({1: rounds(column, members=members)}, policy, (len(column) - 1) * STEP + late_ms))


def growing(count: int = FULL, begin: int = 0) -> list[Pair]:
    """The commit advances by 10 a step, the end by 20: lag never falls."""
    return [(begin + 10 * n, begin + 50 + 20 * n) for n in range(count)]


def standing(count: int = FULL) -> list[Pair]:
    """The commit stands still at 100 while the end grows."""
    return [(100, 150 + 20 * n) for n in range(count)]


def test_rule_1_nothing_waits() -> None:
    one = told([*growing(12), (400, 400)])
    assert (one.status, one.rule, one.lag, one.start_lag) == (Status.OK, StatusRule.NO_LAG, 0, 50)


def test_rule_1_latest_counts_nothing_without_a_commit() -> None:
    column: list[Pair] = [Sample(500, 500, Flag.UNCOMMITTED)] * FULL
    one = told(column)
    assert (one.status, one.rule, one.lag, one.uncommitted) == (Status.OK, StatusRule.NO_COMMIT, 0, True)
    assert told(column, EARLIEST).status is Status.STALL


def test_rule_2_a_commit_that_went_back_is_a_rewind_until_it_is_where_it_was() -> None:
    back: list[Pair] = [(100, 120), (110, 130), Sample(120, 140, Flag.REWIND), (40, 150)]
    one = told(back)
    assert (one.status, one.rule, one.commit_delta) == (Status.REWIND, StatusRule.REWOUND, -60)
    assert told([*back, (110, 160)]).status is not Status.REWIND


def test_rule_2_a_rewind_whose_beginning_is_not_known_is_one() -> None:
    assert told([Sample(100, 150, Flag.REWIND), (60, 160)]).status is Status.REWIND


def test_rule_2_a_rewind_without_lag_is_over() -> None:
    assert told([(100, 120), Sample(110, 120, Flag.REWIND), (120, 120)]).status is Status.OK


def test_rule_2_a_rewind_before_the_window_is_not_told() -> None:
    one = told([(1000, 1010), Sample(1010, 1010, Flag.REWIND), *growing(14)])
    assert one.status is Status.WARN


def test_rule_3_who_caught_up_within_the_window_is_ok_though_nothing_moves_since() -> None:
    one = told([(100, 100), *standing(12)])
    assert (one.status, one.rule) == (Status.OK, StatusRule.CAUGHT_UP)
    assert told([(100, 100), *standing(14)]).status is Status.STALL


def test_rule_4_a_partition_that_was_just_born_has_not_stood_still_for_long() -> None:
    one = told([Sample(50, 50, Flag.FIRST_SEEN), (0, 60), (0, 70)])
    assert (one.status, one.rule, one.may_have_stalled_before) == (Status.OK, StatusRule.JUST_BEGUN, False)


def test_rule_4_a_log_that_was_created_again_begins_anew() -> None:
    before = rounds([*standing(12)])
    after = TargetRound(12 * STEP, 1, (Sample(5, 5),), members=1, members_age_ms=0)
    one = only(evaluate_group_status({1: [*before, after]}, POLICY, 12 * STEP))
    assert (one.status, one.rule, one.start_ms) == (Status.OK, StatusRule.JUST_BEGUN, 12 * STEP)


def test_rule_5_no_progress_under_a_member_is_a_stall_and_stuck() -> None:
    one = told(standing())
    assert (one.status, one.rule, one.stuck) == (Status.STALL, StatusRule.NO_PROGRESS, True)
    assert (one.lag, one.start_lag, one.commit_delta, one.advance_count) == (290, 50, 0, 0)
    assert (one.stalled_since_ms, one.may_have_stalled_before) == (0, True)


@pytest.mark.parametrize("members", [0, None])
def test_rule_6_no_progress_without_a_known_member_is_a_stop(members: int | None) -> None:
    one = told(standing(), members=members)
    assert (one.status, one.stuck) == (Status.STOP, False)


def test_rule_6_a_member_that_came_late_makes_no_stall() -> None:
    late = [replace(this, members=int(this.at_ms > 3 * STEP)) for this in rounds(standing())]
    assert only(evaluate_group_status({1: late}, POLICY, 12 * STEP)).status is Status.STOP


def test_rules_5_and_6_lost_messages_are_no_progress() -> None:
    column: list[Pair] = [Sample(100, 150 + 20 * n, Flag.LOST, 5 * n) for n in range(FULL)]
    one = told(column)
    assert (one.status, one.commit_delta, one.advance_count, one.lost) == (Status.STALL, 0, 0, 60)


def test_rule_7_lag_that_falls_at_times_is_ok_however_short_the_history() -> None:
    one = told([(100, 200), (150, 240)])
    assert (one.status, one.rule, one.commit_delta, one.advance_count) == (Status.OK, StatusRule.LAG_FALLS, 50, 1)


def test_rule_8_lag_that_never_falls_while_commits_advance_is_a_warning() -> None:
    one = told(growing())
    assert (one.status, one.rule, one.stalled_since_ms) == (Status.WARN, StatusRule.LAG_NEVER_FELL, None)
    assert (one.start_lag, one.lag, one.commit_delta, one.advance_count) == (50, 170, 120, 12)


def test_rule_8_constant_lag_is_lag_that_never_falls() -> None:
    assert told([(10 * n, 10 * n + 7) for n in range(FULL)]).status is Status.WARN


@pytest.mark.parametrize("column", [growing(FULL - 1), standing(FULL - 1), [(5, 9)]])
def test_rule_9_a_history_shorter_than_the_window_is_unknown(column: list[Pair]) -> None:
    one = told(column)
    assert (one.status, one.rule) == (Status.UNKNOWN, StatusRule.TOO_SHORT)


def test_rule_9_a_gap_in_which_nothing_may_have_waited_is_unknown() -> None:
    column: list[Pair] = [*growing(6), None, None, None, *growing(8, 10_000)]
    assert told(column).rule is StatusRule.TOO_SHORT


def test_a_gap_over_which_the_commit_stood_still_breaks_nothing() -> None:
    column = standing()
    column[4:9] = [None] * 5
    assert told(column).status is Status.STALL


def test_one_sample_that_is_missing_is_no_gap() -> None:
    column = growing()
    column[5] = None
    assert told(column).status is Status.WARN


def test_what_is_not_fresh_is_unknown_whatever_it_was() -> None:
    one = told([(400, 400)], late_ms=POLICY.stale_after_ms + 1)
    assert (one.status, one.rule, one.lag) == (Status.UNKNOWN, StatusRule.STALE, 0)
    assert told([(400, 400)], late_ms=POLICY.stale_after_ms).status is Status.OK


def test_a_partition_without_a_sample_is_unknown() -> None:
    one = told([None, None])
    assert (one.status, one.rule, one.lag) == (Status.UNKNOWN, StatusRule.NO_SAMPLE, None)


def test_stuck_follows_the_policy_where_it_says_when() -> None:
    patient = replace(POLICY, stuck_after_ms=200_000)
    assert (told(standing(), patient).status, told(standing(), patient).stuck) == (Status.STALL, False)
    assert told(standing(21), patient).stuck is True
    assert compute_lookback_ms(patient) >= 200_000 + patient.max_gap_ms


def test_the_group_is_as_its_worst_partition() -> None:
    found = evaluate_group_status({1: rounds(growing(), standing()), 2: rounds([(5, 5)] * FULL)}, POLICY, 12 * STEP)
    assert [one.status for one in found.partitions] == [Status.WARN, Status.STALL, Status.OK]
    assert (found.status, found.members, found.at_ms) == (Status.STALL, 1, 12 * STEP)
    assert describe_group(found) == "Of 3 partitions: 1 stall, 1 warn, 1 ok."


def test_a_target_that_was_not_measured_lately_keeps_the_group_from_ok() -> None:
    fine = rounds([(5, 5)] * FULL)
    found = evaluate_group_status({1: fine, 2: []}, POLICY, 12 * STEP)
    assert (found.status, found.unmeasured) == (Status.UNKNOWN, (2,))
    assert describe_group(found) == "Of 1 partition: 1 ok. 1 of the topics was not measured recently."
    assert evaluate_group_status({1: fine}, POLICY, 12 * STEP).status is Status.OK


def test_nothing_measured_is_unknown() -> None:
    empty = evaluate_group_status({1: []}, POLICY, 0)
    assert (empty.status, empty.unmeasured, empty.at_ms) == (Status.UNKNOWN, (1,), None)
    absent = evaluate_group_status({1: [TargetRound(0, 0, (), notes=Note.NO_TOPIC)]}, POLICY, 0)
    assert absent.status is Status.UNKNOWN
    assert find_worst_status([]) is Status.UNKNOWN


def test_a_partition_with_far_more_lag_than_the_others_is_hot() -> None:
    calm: list[Pair] = [(0, 200)] * FULL
    found = evaluate_group_status({1: rounds([(0, 1000)] * FULL, calm, calm)}, POLICY, 12 * STEP)
    assert [one.hot for one in found.partitions] == [True, False, False]
    cooler = evaluate_group_status({1: rounds([(0, 999)] * FULL, calm, calm)}, POLICY, 12 * STEP)
    assert [one.hot for one in cooler.partitions] == [False] * 3


@pytest.mark.parametrize(
    ("column", "rule"),
    [
        ([(0, 100)] * FULL, "not above the threshold"),
        ([(0, 0)] * 12 + [(0, 900)], "one spike"),
        ([(0, 900)] * 12 + [(850, 900)], "it is over"),
    ],
)
def test_little_or_short_lag_is_not_hot(column: list[Pair], rule: str) -> None:
    found = evaluate_group_status({1: rounds(column, [(0, 0)] * FULL)}, POLICY, 12 * STEP)
    assert [one.hot for one in found.partitions] == [False, False], rule


def test_an_only_partition_is_not_hot() -> None:
    assert told([(0, 9000)] * FULL).hot is False


def test_where_the_threshold_counts_seconds_hot_begins_at_500_messages() -> None:
    policy = parse_policy({"lagThreshold": "10", "metric": "timeLag"})
    for lag, hot in ((500, False), (501, True)):
        found = evaluate_group_status({1: rounds([(0, lag)] * FULL, [(0, 0)] * FULL)}, policy, 12 * STEP)
        assert found.partitions[0].hot is hot


def test_the_window_is_ten_intervals_two_gaps_or_two_minutes() -> None:
    assert compute_window_ms(POLICY) == 120_000
    assert compute_window_ms(parse_policy({"samplingInterval": "60"})) == 600_000
    assert compute_window_ms(parse_policy({"maxGapSeconds": "100", "staleAfterSeconds": "100"})) == 200_000


@pytest.mark.parametrize("rule", list(StatusRule))
def test_every_rule_has_a_sentence(rule: StatusRule) -> None:
    one = PartitionStatus(1, 0, Status.STOP, rule, 5, 10, 7, 0, 3, 4, lost=2, stuck=True, hot=True)
    text = describe_partition(one)
    assert not text[0].islower()
    assert text.endswith(".")
    for word in ("2 messages were lost", "Stuck:", "Hot partition:"):
        assert word in text


def test_the_sentence_of_a_stall_names_offset_time_and_lag() -> None:
    assert describe_partition(told(standing())) == (
        "The commit has not moved from 100 for at least 120 s, while the group had members; lag 290. "
        "Stuck: the group has members, but the commit does not advance."
    )
