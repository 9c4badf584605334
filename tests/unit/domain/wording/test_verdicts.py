"""Every reason has a sentence, with the numbers of its own judgment."""

from __future__ import annotations

import pytest

from lagscale.domain.explain.decision_diff import ValueChange
from lagscale.domain.lag.time_lag import TimeLag
from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.verdict.contract import Answer, Island, Judgment, Reason, Verdict
from lagscale.domain.verdict.value import ValueRule
from lagscale.domain.wording.numbers import format_count
from lagscale.domain.wording.verdicts import describe_answer, describe_change, describe_verdict

POLICY = parse_policy({"lagThreshold": "500", "sustainSeconds": "120"})


def judged(reason: Reason, **facts: object) -> Judgment:
    given: dict[str, object] = {
        "verdict": Verdict.UNKNOWN, "value": None, "active": None, "at_ms": 1_000_000, "now_ms": 1_095_000,
        "total": 5000, "partitions": 3, "missing": 1,
    }  # fmt: skip
    return Judgment(reason=reason, **(given | facts))  # type: ignore[arg-type]


@pytest.mark.parametrize("reason", list(Reason))
def test_each_reason_is_told_with_and_without_evidence(reason: Reason) -> None:
    island = Island(7, 2, 4000, 900_000, 40_000, False)
    for facts in ({}, {"island": island}, {"island": island, "value": 1500.0}):
        text = describe_verdict(judged(reason, **facts), POLICY)
        assert text[0].isupper() or text[0].isdigit()
        assert text.endswith(".")


def test_a_sustained_verdict_names_partition_span_and_cap() -> None:
    judgment = judged(
        Reason.LASTED, verdict=Verdict.SUSTAINED, value=1500.0, active=True, missing=0,
        island=Island(7, 2, 4000, 900_000, 130_000, True),
    )  # fmt: skip
    assert describe_verdict(judgment, POLICY, {7: "orders"}) == (
        "Partition 2 of orders has been above 500 for 130 s, and sustainSeconds is 120 s: "
        "total lag 5,000, value 1,500 (capped by the number of partitions)."
    )


def test_a_short_island_says_how_long_it_still_takes() -> None:
    text = describe_verdict(judged(Reason.NOT_YET, island=Island(7, 0, 900, 0, 40_500, True)), POLICY)
    assert "for 40.5 s; sustained in 79.5 s" in text


def test_absent_topics_are_named() -> None:
    assert "exists: orders, refunds." in describe_verdict(
        judged(Reason.NO_TOPIC, absent=(1, 2)), POLICY, {1: "orders", 2: "refunds"}
    )


def test_staleness_tells_the_age() -> None:
    assert "is 95 s old, staleAfterSeconds is 30 s" in describe_verdict(judged(Reason.STALE), POLICY)


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        (None, "KEDA gets an error"),
        (Answer(1500.0, True, 1_000_000), "last-known answer, 95 s old, at most 3,600 s: value 1,500, active."),
        (Answer(500.0, True), "value 500, active, to activate the group from zero."),
    ],
)
def test_what_keda_gets_is_told(told: Answer | None, wanted: str) -> None:
    assert wanted in describe_answer(judged(Reason.STALE), POLICY, told)


def test_an_error_keeps_the_replicas_only_where_the_minimum_is_one_or_more() -> None:
    text = describe_answer(judged(Reason.NO_DATA), POLICY, None)
    assert "where minReplicaCount is 1 or more, it keeps the current replicas" in text
    assert "at 0 it may scale to zero" in text


def test_a_capped_value_names_the_tolerance_of_the_hpa() -> None:
    judgment = judged(Reason.LASTED, value=1500.0)
    for rule in (ValueRule.REPLICA_CAP, ValueRule.LAGGING_CAP):
        text = describe_change(ValueChange(rule, 5000.0, 1500.0), judgment, POLICY)
        assert "The HPA changes nothing within its tolerance, 10 % by default" in text
    assert "HPA" not in describe_change(ValueChange(ValueRule.FLOOR, 500.0, 1500.0), judgment, POLICY)


def test_counts_have_their_noun_in_the_singular_and_the_plural() -> None:
    assert [format_count(number, "message") for number in (0, 1, 2000)] == ["0 messages", "1 message", "2,000 messages"]
    assert format_count(2, "batch", "batches") == "2 batches"


def test_a_time_lag_beyond_the_samples_is_a_lower_bound_and_no_promise() -> None:
    policy = parse_policy({"metric": "timeLag", "lagThreshold": "600", "sustainSeconds": "120"})
    text = describe_verdict(judged(Reason.START_UNKNOWN, time_lag=TimeLag(356_000, 356_000, None)), policy)
    assert text.startswith("The oldest unread message has waited for at least 356 s, longer than anything stored;")
    assert "is above" not in text
    assert "at most" not in text
