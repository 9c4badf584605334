"""Policies are read by one table, and what cannot go together is named."""

from __future__ import annotations

import pytest

from lagscale.domain.policy.parsing import parse_policy
from lagscale.errors import InvalidInput


def faults_of(**values: str) -> dict[str, str]:
    with pytest.raises(InvalidInput) as raised:
        parse_policy(values)
    return {field_error.field: field_error.text for field_error in raised.value.field_errors}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("allowIdleConsumers", "limitToPartitionsWithLag"),
        ("allowIdleConsumers", "ensureEvenDistributionOfPartitions"),
        ("limitToPartitionsWithLag", "ensureEvenDistributionOfPartitions"),
    ],
)
def test_rules_of_the_value_exclude_each_other(one: str, other: str) -> None:
    assert faults_of(**{one: "true", other: "True"}) == {other: f"excludes {one}; remove one of them"}
    assert parse_policy({one: "false", other: "true"}).even_split is (other == "ensureEvenDistributionOfPartitions")


def test_the_stabilization_windows_are_bounded_together() -> None:
    assert (
        parse_policy({"scaleUpStabilization": "1800", "scaleDownStabilization": "1800"}).stabilization_ms == 3_600_000
    )
    assert (
        "3601 s together"
        in faults_of(scaleUpStabilization="1800", scaleDownStabilization="1801")["scaleDownStabilization"]
    )
    assert "at most 3600" in faults_of(scaleUpStabilization="3601")["scaleUpStabilization"]


def test_stuck_is_off_or_at_least_the_greatest_gap() -> None:
    assert parse_policy({}).stuck_after_ms == parse_policy({"stuckAfterSeconds": "off"}).stuck_after_ms == 0
    assert parse_policy({"stuckAfterSeconds": "25"}).stuck_after_ms == 25_000
    assert "at least maxGapSeconds = 25, or off" in faults_of(stuckAfterSeconds="24.9")["stuckAfterSeconds"]


def test_the_lookback_reaches_as_far_as_every_rule_of_the_policy() -> None:
    plain = parse_policy({})
    assert plain.lookback_ms == 30_000 + 25_000 + 120_000
    assert parse_policy({"stuckAfterSeconds": "600"}).lookback_ms == plain.lookback_ms + 480_000
    windows = parse_policy({"scaleUpStabilization": "60", "scaleDownStabilization": "90"})
    assert (windows.lookback_ms, windows.answer_lookback_ms) == (plain.lookback_ms, plain.lookback_ms + 150_000)
    assert "at most 18 h" in faults_of(stuckAfterSeconds="64800")["sustainSeconds"]


def test_a_held_answer_looks_back_over_what_is_kept() -> None:
    assert parse_policy({"scaleDownStabilization": "60"}).hold_window_ms == 300_000
    assert parse_policy({"scaleDownStabilization": "900"}).hold_window_ms == 900_000
