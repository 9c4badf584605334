"""How a value came about, for every numbered history, and why an answer is not what the samples say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lagscale.domain.explain.decision_diff import (
    ACTIVATION,
    LAST_KNOWN,
    TIME_LAG,
    DiffReason,
    Evaluation,
    RecordedDecision,
    ValueChange,
    compute_value_changes,
    find_diff_reasons,
    is_same_answer,
    select_current,
)
from lagscale.domain.lag.time_lag import TimeLag
from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.policy.policy import Metric
from lagscale.domain.verdict.contract import Answer, Judgment, Reason, Verdict
from lagscale.domain.verdict.evaluate import judge
from lagscale.domain.verdict.hold import apply_partial_coverage
from lagscale.domain.verdict.value import ValueRule
from lagscale.domain.wording.answers import PointInTime, describe_decisions, describe_diff
from lagscale.domain.wording.verdicts import describe_change, describe_verdict
from tests.contract.case import Case
from tests.contract.histories import ms
from tests.contract.table import CASES

POLICY = parse_policy({"lagThreshold": "500"})


def judged(**facts: Any) -> Judgment:
    given: dict[str, Any] = {
        "verdict": Verdict.SUSTAINED, "reason": Reason.LASTED, "value": 1500.0, "active": True, "at_ms": 60_000,
        "now_ms": 61_000, "raw": 1500.0, "scale_up_value": 1500.0, "total": 5000, "partitions": 3, "lagging": 3,
    }  # fmt: skip
    return Judgment(**(given | facts))


def record(**facts: Any) -> RecordedDecision:
    given: dict[str, Any] = {
        "replica": "one", "decided_ms": 61_000, "snapshot_ms": 60_000, "verdict": "sustained", "value": 1500.0,
        "active": True, "last_known": False, "reason": "lasted", "code": "OK", "version": 1,
    }  # fmt: skip
    return RecordedDecision(**(given | facts))


def refused(**facts: Any) -> RecordedDecision:
    unknown = {"verdict": "unknown", "value": None, "active": None, "reason": "stale", "code": "UNAVAILABLE"}
    return record(**(unknown | facts))


@pytest.mark.parametrize("case", CASES, ids=[f"{case.number}: {case.says}" for case in CASES])
def test_the_rules_lead_from_the_total_to_the_value(case: Case) -> None:
    targets, policy = case.history().targets(), case.parsed()
    for expected in case.expected:
        now_ms = ms(expected.at)
        judgment = judge(targets, policy, now_ms=now_ms, upto_ms=now_ms)
        made = compute_value_changes(judgment, policy)
        assert describe_verdict(judgment, policy).endswith(".")
        if judgment.value is None:
            continue
        total = float(judgment.total) if judgment.verdict is Verdict.SUSTAINED else 0.0
        before = total
        for change in made:
            assert change.before == before
            # From messages to seconds the number may stay.
            assert change.after != before or change.rule == TIME_LAG
            before = change.after
            assert describe_change(change, judgment, policy).endswith(".")
        assert before == judgment.value, f"at {expected.at} s: {judgment}"


def test_the_order_of_the_rules_is_the_contracts() -> None:
    judgment = judged(
        total=9000, stuck=((1, 0),), stuck_lag=1000, partitions=12, lagging=8, recovering=True, members=4,
        incomplete=True, raw=2000.0, scale_up_value=1000.0, value=3000.0,
    )  # fmt: skip
    policy = replace(POLICY, limit_to_lagging=True, drain_ms=60_000, scale_up_ms=60_000, scale_down_ms=300_000)
    assert compute_value_changes(judgment, policy) == [
        ValueChange(ValueRule.STUCK, 9000.0, 8000.0),
        ValueChange(ValueRule.REPLICA_CAP, 8000.0, 6000.0),
        ValueChange(ValueRule.LAGGING_CAP, 6000.0, 4000.0),
        ValueChange(ValueRule.RECOVERING, 4000.0, 2000.0),
        ValueChange(ValueRule.SCALE_UP, 2000.0, 1000.0),
        ValueChange(ValueRule.SCALE_DOWN, 1000.0, 3000.0),
    ]
    assert "(the highest value of scaleDownStabilization 300 s)" in describe_verdict(judgment, policy)


def test_seconds_stand_between_the_total_and_the_caps() -> None:
    judgment = judged(time_lag=TimeLag(15_000, 21_000, 30_000), members=2, raw=42.0, scale_up_value=42.0, value=42.0)
    policy = replace(POLICY, metric=Metric.TIME_LAG, target_lag=30.0, lag_threshold=30)
    assert compute_value_changes(judgment, policy) == [ValueChange(TIME_LAG, 5000.0, 42.0)]
    assert "has been above a time lag of 30 s" in describe_verdict(judgment, policy)


def test_of_a_part_of_the_topics_the_floor_comes_last() -> None:
    policy = replace(POLICY, scale_up_ms=60_000)
    judgment = apply_partial_coverage(judged(members=9, raw=1500.0, scale_up_value=600.0, value=600.0), policy)
    assert compute_value_changes(judgment, policy) == [
        ValueChange(ValueRule.REPLICA_CAP, 5000.0, 1500.0),
        ValueChange(ValueRule.SCALE_UP, 1500.0, 600.0),
        ValueChange(ValueRule.FLOOR, 600.0, 4500.0),
    ]


def test_a_calm_value_that_stays_up_is_explained() -> None:
    policy = replace(POLICY, scale_down_ms=300_000)
    judgment = judged(verdict=Verdict.CALM, reason=Reason.NO_BREACH, raw=0.0, scale_up_value=0.0, total=0)
    assert "The value is 1,500 nevertheless: the highest value of scaleDownStabilization 300 s" in describe_verdict(
        judgment, policy
    )


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        (None, []),
        (Answer(700.0, True, 60_000), [ValueChange(LAST_KNOWN, None, 700.0)]),
        (Answer(500.0, True), [ValueChange(ACTIVATION, None, 500.0)]),
    ],
)
def test_what_becomes_of_an_unknown_value(told: Answer | None, wanted: list[ValueChange]) -> None:
    unknown = judged(verdict=Verdict.UNKNOWN, reason=Reason.STALE, value=None, active=None)
    assert compute_value_changes(unknown, POLICY, told) == wanted
    assert all(describe_change(change, unknown, POLICY) for change in wanted)


@pytest.mark.parametrize(
    ("row", "told", "wanted"),
    [
        (record(), Answer(1500.0, True), True),
        (record(), Answer(1500.1, True), False),
        (record(), Answer(1500.0, False), False),
        (record(last_known=True), Answer(1500.0, True), False),
        (record(last_known=True), Answer(1500.0, True, 1), True),
        (record(), None, False),
        (refused(), None, True),
        (refused(), Answer(0.0, False), False),
    ],
)
def test_an_answer_agrees_in_all_that_keda_sees(row: RecordedDecision, told: Answer | None, wanted: bool) -> None:
    assert is_same_answer(row, told) is wanted


ERROR = Evaluation(judged(verdict=Verdict.UNKNOWN, value=None, active=None), None)
HIGHER = Evaluation(judged(at_ms=70_000), Answer(2000.0, True))
SAME = Evaluation(judged(), Answer(1500.0, True))


@pytest.mark.parametrize(
    ("row", "at", "then", "same", "wanted"),
    [
        (record(), SAME, None, True, []),
        (record(version=None), SAME, None, False, []),
        (record(reason="store_silent", last_known=True), HIGHER, SAME, True, [DiffReason.STORE_UNAVAILABLE]),
        (refused(reason="StoreTimeout"), HIGHER, SAME, True, [DiffReason.STORE_UNAVAILABLE]),
        (record(reason="frozen", last_known=True), HIGHER, SAME, False, [DiffReason.FROZEN]),
        (refused(reason="frozen"), HIGHER, SAME, True, [DiffReason.FROZEN]),
        (record(), HIGHER, SAME, True, [DiffReason.NEWER_ROUNDS]),
        (record(), HIGHER, SAME, False, [DiffReason.OTHER_POLICY, DiffReason.NEWER_ROUNDS]),
        (record(), ERROR, SAME, True, [DiffReason.TIME_PASSED]),
        (record(overrides={"lagThreshold": "7"}), ERROR, SAME, True, [DiffReason.OVERRIDES]),
        (record(decided_ms=72_000), HIGHER, HIGHER, True, [DiffReason.SNAPSHOT]),
        (record(decided_ms=74_000), HIGHER, HIGHER, True, [DiffReason.LATE_ROUNDS]),
        (record(snapshot_ms=70_000), HIGHER, HIGHER, True, [DiffReason.FILLED_LATER]),
        (refused(snapshot_ms=None), HIGHER, HIGHER, True, [DiffReason.LATE_ROUNDS]),
        (record(snapshot_ms=80_000), HIGHER, HIGHER, True, [DiffReason.UNEXPLAINED]),
        (record(), HIGHER, None, True, [DiffReason.DROPPED]),
        (record(), HIGHER, None, False, [DiffReason.OTHER_POLICY]),
    ],
)
def test_why_an_answer_differs(
    row: RecordedDecision, at: Evaluation, then: Evaluation | None, same: bool, wanted: list[DiffReason]
) -> None:
    found = find_diff_reasons(row, at, then, same_policy=same)
    assert found == wanted
    assert bool(describe_diff(found, row, PointInTime(75_000, 2))) is bool(wanted)


@pytest.mark.parametrize("why", list(DiffReason))
def test_every_reason_has_a_sentence(why: DiffReason) -> None:
    for row in (record(), refused(), record(version=None, overrides={"lagThreshold": "7"})):
        assert describe_diff([why], row, PointInTime(75_000, 2)).endswith(".")


def test_a_decision_speaks_until_the_next_one_is_due() -> None:
    rows = [record(decided_ms=0), record(decided_ms=60_000)]
    assert select_current(rows, 360_000) == rows
    assert select_current(rows, 360_001) == rows[1:]


@pytest.mark.parametrize(
    ("rows", "before", "wanted"),
    [
        ([], None, "No answer to KEDA is recorded."),
        ([], record(decided_ms=1_000), "the previous one, 99 s earlier: value 1,500, active."),
        ([record(), record(replica="two")], None, "Answer to KEDA: value 1,500, active."),
        ([record(last_known=True, verdict="unknown")], None, "Answer to KEDA: last-known answer: value 1,500, active."),
        ([record(verdict="unknown", value=500.0)], None, "Answer to KEDA: value 500, active, to activate the group from zero."),
        ([refused()], None, "Answer to KEDA: an error (UNAVAILABLE, stale)."),
        (
            [record(), refused(replica="two")],
            None,
            "Replicas answered KEDA differently: value 1,500, active by one; an error (UNAVAILABLE, stale) by two.",
        ),
    ],
)  # fmt: skip
def test_what_was_told_is_a_sentence(
    rows: list[RecordedDecision], before: RecordedDecision | None, wanted: str
) -> None:
    assert describe_decisions(rows, before, 100_000).endswith(wanted)
