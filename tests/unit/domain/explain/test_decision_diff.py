"""How a value came about, for every numbered history, and why an answer is not what the samples say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lagscale.domain.explain.decision_diff import (
    HELD,
    TIME_LAG,
    WAKING,
    Change,
    Record,
    Said,
    Why,
    agrees,
    changes,
    current,
    reasons,
)
from lagscale.domain.lag.time_lag import TimeLag
from lagscale.domain.policy.policy import Metric, Policy
from lagscale.domain.verdict.contract import Judgement, Reason, Told, Verdict
from lagscale.domain.verdict.evaluate import judge
from lagscale.domain.verdict.partial import by_a_part
from lagscale.domain.verdict.value import Rule
from lagscale.domain.wording.answers import About, told_sentence, why_sentence
from lagscale.domain.wording.verdicts import change_sentence, sentence
from tests.contract.case import Case
from tests.contract.histories import ms
from tests.contract.table import CASES

POLICY = Policy.parse({"lagThreshold": "500"})


def judged(**facts: Any) -> Judgement:
    given: dict[str, Any] = {
        "verdict": Verdict.SUSTAINED, "reason": Reason.LASTED, "value": 1500.0, "active": True, "at_ms": 60_000,
        "now_ms": 61_000, "raw": 1500.0, "risen": 1500.0, "total": 5000, "partitions": 3, "lagging": 3,
    }  # fmt: skip
    return Judgement(**(given | facts))


def record(**facts: Any) -> Record:
    given: dict[str, Any] = {
        "replica": "one", "told_ms": 61_000, "snapshot_ms": 60_000, "verdict": "sustained", "value": 1500.0,
        "active": True, "held": False, "reason": "lasted", "code": "OK", "version": 1,
    }  # fmt: skip
    return Record(**(given | facts))


def refused(**facts: Any) -> Record:
    unknown = {"verdict": "unknown", "value": None, "active": None, "reason": "stale", "code": "UNAVAILABLE"}
    return record(**(unknown | facts))


@pytest.mark.parametrize("case", CASES, ids=[f"{case.number}: {case.says}" for case in CASES])
def test_the_rules_lead_from_the_total_to_the_value(case: Case) -> None:
    targets, policy = case.history().targets(), case.parsed()
    for expected in case.expected:
        now_ms = ms(expected.at)
        judgement = judge(targets, policy, now_ms=now_ms, upto_ms=now_ms)
        made = changes(judgement, policy)
        assert sentence(judgement, policy).endswith(".")
        if judgement.value is None:
            continue
        total = float(judgement.total) if judgement.verdict is Verdict.SUSTAINED else 0.0
        before = total
        for change in made:
            assert change.before == before
            # From messages to seconds the number may stay.
            assert change.after != before or change.rule == TIME_LAG
            before = change.after
            assert change_sentence(change, judgement, policy).endswith(".")
        assert before == judgement.value, f"at {expected.at} s: {judgement}"


def test_the_order_of_the_rules_is_the_contracts() -> None:
    judgement = judged(
        total=9000, stuck=((1, 0),), stuck_lag=1000, partitions=12, lagging=8, draining=True, members=4,
        incomplete=True, raw=2000.0, risen=1000.0, value=3000.0,
    )  # fmt: skip
    policy = replace(POLICY, limit_to_lagging=True, drain_ms=60_000, scale_up_ms=60_000, scale_down_ms=300_000)
    assert changes(judgement, policy) == [
        Change(Rule.STUCK, 9000.0, 8000.0),
        Change(Rule.REPLICA_CAP, 8000.0, 6000.0),
        Change(Rule.LAGGING_CAP, 6000.0, 4000.0),
        Change(Rule.DRAINING, 4000.0, 2000.0),
        Change(Rule.SCALE_UP, 2000.0, 1000.0),
        Change(Rule.SCALE_DOWN, 1000.0, 3000.0),
    ]
    assert "(the highest of the last 300 s, scaleDownStabilization)" in sentence(judgement, policy)


def test_seconds_stand_between_the_total_and_the_caps() -> None:
    judgement = judged(time_lag=TimeLag(15_000, 21_000, 30_000), members=2, raw=42.0, risen=42.0, value=42.0)
    policy = replace(POLICY, metric=Metric.TIME_LAG, target_lag=30.0, lag_threshold=30)
    assert changes(judgement, policy) == [Change(TIME_LAG, 5000.0, 42.0)]
    assert "has been above a time lag of 30 s" in sentence(judgement, policy)


def test_of_a_part_of_the_topics_the_floor_comes_last() -> None:
    policy = replace(POLICY, scale_up_ms=60_000)
    judgement = by_a_part(judged(members=9, raw=1500.0, risen=600.0, value=600.0), policy)
    assert changes(judgement, policy) == [
        Change(Rule.REPLICA_CAP, 5000.0, 1500.0),
        Change(Rule.SCALE_UP, 1500.0, 600.0),
        Change(Rule.FLOOR, 600.0, 4500.0),
    ]


def test_a_calm_value_that_stays_up_is_explained() -> None:
    policy = replace(POLICY, scale_down_ms=300_000)
    judgement = judged(verdict=Verdict.CALM, reason=Reason.NO_BREACH, raw=0.0, risen=0.0, total=0)
    assert "The value is 1,500 all the same: the highest of the last 300 s" in sentence(judgement, policy)


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        (None, []),
        (Told(700.0, True, 60_000), [Change(HELD, None, 700.0)]),
        (Told(500.0, True), [Change(WAKING, None, 500.0)]),
    ],
)
def test_what_becomes_of_an_unknown_value(told: Told | None, wanted: list[Change]) -> None:
    unknown = judged(verdict=Verdict.UNKNOWN, reason=Reason.STALE, value=None, active=None)
    assert changes(unknown, POLICY, told) == wanted
    assert all(change_sentence(change, unknown, POLICY) for change in wanted)


@pytest.mark.parametrize(
    ("row", "told", "wanted"),
    [
        (record(), Told(1500.0, True), True),
        (record(), Told(1500.1, True), False),
        (record(), Told(1500.0, False), False),
        (record(held=True), Told(1500.0, True), False),
        (record(held=True), Told(1500.0, True, 1), True),
        (record(), None, False),
        (refused(), None, True),
        (refused(), Told(0.0, False), False),
    ],
)
def test_an_answer_agrees_in_all_that_keda_sees(row: Record, told: Told | None, wanted: bool) -> None:
    assert agrees(row, told) is wanted


ERROR = Said(judged(verdict=Verdict.UNKNOWN, value=None, active=None), None)
HIGHER = Said(judged(at_ms=70_000), Told(2000.0, True))
SAME = Said(judged(), Told(1500.0, True))


@pytest.mark.parametrize(
    ("row", "at", "then", "same", "wanted"),
    [
        (record(), SAME, None, True, []),
        (record(version=None), SAME, None, False, []),
        (record(reason="store_silent", held=True), HIGHER, SAME, True, [Why.STORE_AWAY]),
        (refused(reason="StoreTimeout"), HIGHER, SAME, True, [Why.STORE_AWAY]),
        (record(reason="frozen", held=True), HIGHER, SAME, False, [Why.FROZEN]),
        (refused(reason="frozen"), HIGHER, SAME, True, [Why.FROZEN]),
        (record(), HIGHER, SAME, True, [Why.NEWER_ROUNDS]),
        (record(), HIGHER, SAME, False, [Why.OTHER_POLICY, Why.NEWER_ROUNDS]),
        (record(), ERROR, SAME, True, [Why.TIME_PASSED]),
        (record(overrides={"lagThreshold": "7"}), ERROR, SAME, True, [Why.OVERRIDES]),
        (record(told_ms=72_000), HIGHER, HIGHER, True, [Why.SNAPSHOT]),
        (record(told_ms=74_000), HIGHER, HIGHER, True, [Why.LATE_ROUNDS]),
        (record(snapshot_ms=70_000), HIGHER, HIGHER, True, [Why.FILLED_LATER]),
        (refused(snapshot_ms=None), HIGHER, HIGHER, True, [Why.LATE_ROUNDS]),
        (record(snapshot_ms=80_000), HIGHER, HIGHER, True, [Why.NOT_KNOWN]),
        (record(), HIGHER, None, True, [Why.DROPPED]),
        (record(), HIGHER, None, False, [Why.OTHER_POLICY]),
    ],
)
def test_why_an_answer_differs(row: Record, at: Said, then: Said | None, same: bool, wanted: list[Why]) -> None:
    found = reasons(row, at, then, same_policy=same)
    assert found == wanted
    assert bool(why_sentence(found, row, About(75_000, 2))) is bool(wanted)


@pytest.mark.parametrize("why", list(Why))
def test_every_reason_has_a_sentence(why: Why) -> None:
    for row in (record(), refused(), record(version=None, overrides={"lagThreshold": "7"})):
        assert why_sentence([why], row, About(75_000, 2)).endswith(".")


def test_a_decision_speaks_until_the_next_one_is_due() -> None:
    rows = [record(told_ms=0), record(told_ms=60_000)]
    assert current(rows, 360_000) == rows
    assert current(rows, 360_001) == rows[1:]


@pytest.mark.parametrize(
    ("rows", "before", "wanted"),
    [
        ([], None, "No answer to KEDA is on record."),
        ([], record(told_ms=1_000), "the last one before, 99 s earlier, was value 1,500, active."),
        ([record(), record(replica="two")], None, "KEDA was told value 1,500, active."),
        ([record(held=True, verdict="unknown")], None, "KEDA was told the last known answer, held: value 1,500, active."),
        ([record(verdict="unknown", value=500.0)], None, "KEDA was told value 500, active, to wake the group."),
        ([refused()], None, "KEDA was told an error (UNAVAILABLE, stale)."),
        (
            [record(), refused(replica="two")],
            None,
            "KEDA was not told the same by all: value 1,500, active by one; an error (UNAVAILABLE, stale) by two.",
        ),
    ],
)  # fmt: skip
def test_what_was_told_is_a_sentence(rows: list[Record], before: Record | None, wanted: str) -> None:
    assert told_sentence(rows, before, 100_000).endswith(wanted)
