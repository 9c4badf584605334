"""Policies are read by one table, and what cannot go together is named."""

from __future__ import annotations

import pytest

from lagscale.domain.policy.keys import KEYS, PolicyKey
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


def test_an_active_value_is_at_most_the_target() -> None:
    assert parse_policy({"activeValue": "0.5", "targetLag": "0.5"}).active_value == 0.5
    assert parse_policy({}).active_value == 0
    assert "at most targetLag = 500" in faults_of(activeValue="500.001")["activeValue"]
    assert "at most 3 decimals" in faults_of(activeValue="0.0001")["activeValue"]
    assert "from 0 to" in faults_of(activeValue="-1")["activeValue"]


def test_draining_compares_messages() -> None:
    assert "metric timeLag" in faults_of(metric="timeLag", drainSeconds="60", lagThreshold="60")["drainSeconds"]


@pytest.mark.parametrize("key", [key for key in KEYS if key.is_number], ids=lambda key: str(key.name))
def test_what_is_above_the_greatest_value_names_key_and_limit(key: PolicyKey) -> None:
    assert f"{key.maximum}, not" in faults_of(**{key.name: str(key.maximum + 1)})[key.name]


def test_a_number_has_no_more_digits_than_a_double_gives_back() -> None:
    assert parse_policy({"targetLag": "123456789012.345"}).target_milli == 123_456_789_012_345
    assert parse_policy({"targetLag": "1000000000000000"}).target_milli == 10**18
    assert "at most 15 digits" in faults_of(targetLag="1234567890123.456")["targetLag"]
