"""A tenant's defaults and limits, of every key that a policy has."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from lagscale.domain.policy.keys import KEYS, KEYS_BY_NAME, ValueType
from lagscale.domain.policy.parsing import format_effective_values, list_effective_values, normalize_value, parse_policy
from lagscale.domain.policy.policy import Policy
from lagscale.domain.policy.tenant_rules import PolicyRules
from lagscale.errors import InvalidInput

#: Of every key a value that is not the default, with what must stand beside it.
OTHERS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "lagThreshold": ("700", {}),
    "targetLag": ("0.125", {}),
    "sustainSeconds": ("60", {}),
    "samplingInterval": ("5", {}),
    "windowSize": ("20", {}),
    "maxGapSeconds": ("40", {"staleAfterSeconds": "50"}),
    "staleAfterSeconds": ("45", {}),
    "scaleUpStabilization": ("30", {}),
    "scaleDownStabilization": ("300", {}),
    "activationLagThreshold": ("5", {}),
    "activationSustainSeconds": ("10", {}),
    "workSeconds": ("200", {}),
    "persistenceScope": ("total", {}),
    "metric": ("timeLag", {}),
    "offsetResetPolicy": ("earliest", {}),
    "scaleToZeroOnInvalidOffset": ("true", {}),
    "isolationLevel": ("read_committed", {}),
    "partitionLimitation": ("1,3-5", {}),
    "allowIdleConsumers": ("true", {}),
    "consumersPerReplica": ("2", {}),
    "limitToPartitionsWithLag": ("true", {}),
    "ensureEvenDistributionOfPartitions": ("true", {}),
    "stuckAfterSeconds": ("90", {}),
    "drainSeconds": ("60", {}),
    "holdSeconds": ("60", {}),
    "activeValue": ("1", {}),
}
NAMES = sorted(KEYS_BY_NAME)
NUMBERS = [key.name for key in KEYS if key.value_type in {ValueType.COUNT, ValueType.NUMBER, ValueType.SECONDS}]


def rules(limits: Mapping[str, Mapping[str, object]], defaults: Mapping[str, str] | None = None) -> PolicyRules:
    return PolicyRules.read(defaults or {}, limits)


def broken(made: PolicyRules, given: Mapping[str, str], except_for: Policy | None = None) -> dict[str, str]:
    """Field -> text of what the rules forbid."""
    policy = made.policy(given, tick_seconds=1.0, minimum_interval=1)
    return {
        field_error.field: field_error.text for field_error in made.field_errors(policy, given, except_for=except_for)
    }


def test_every_key_is_told_of_a_policy_in_force() -> None:
    assert set(OTHERS) == set(KEYS_BY_NAME)
    assert set(format_effective_values(parse_policy({}), {"windowSize": "20"})) == set(KEYS_BY_NAME)
    assert set(list_effective_values(parse_policy({}))) == set(KEYS_BY_NAME) - {"windowSize"}


@pytest.mark.parametrize("name", NAMES)
def test_a_default_of_every_key_is_in_force_where_none_is_given(name: str) -> None:
    value, beside = OTHERS[name]
    made = rules({}, {name: value, **beside})
    assert made.inherited({"lagThreshold": "9"}).get(name) == (None if name == "lagThreshold" else value)
    policy = made.policy({}, tick_seconds=1.0, minimum_interval=1)
    assert format_effective_values(policy, made.inherited({}))[name] == value
    assert made.inherited({name: "1", **dict.fromkeys(beside, "1")}) == {}


@pytest.mark.parametrize("name", NAMES)
def test_every_key_can_be_fixed_and_another_value_is_refused(name: str) -> None:
    value, beside = OTHERS[name]
    made = rules({name: {"fixed": value}}, beside)
    assert broken(made, {}) == {}
    assert broken(made, {name: value}) == {}
    forbidden = rules({name: {"allowed": [_another(name)]}})
    found = broken(forbidden, {name: value, **beside})
    assert set(found) == {name}
    assert f"only {_another(name)}" in found[name]
    assert "platform administrator" in found[name]


def _another(name: str) -> str:
    """A value that the key may have and `OTHERS` has not."""
    usual = format_effective_values(parse_policy({}), {"windowSize": "21"})[name]
    return usual if usual != OTHERS[name][0] else "1"


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_has_bounds_that_are_included(name: str) -> None:
    value, beside = OTHERS[name]
    given = {name: value, **beside}
    assert broken(rules({name: {"min": value, "max": value}}), given) == {}
    above, below = str(float(value) + 0.125), str(max(float(value) - 0.125, 0))
    assert f"at least {above.removesuffix('.0')}" in broken(rules({name: {"min": above}}), given)[name]
    assert f"at most {below.removesuffix('.0')}" in broken(rules({name: {"max": below}}), given)[name]


def test_limits_are_held_against_what_is_in_force_and_not_given() -> None:
    made = rules({"lagThreshold": {"min": "1000"}, "targetLag": {"max": "100"}})
    assert broken(made, {"lagThreshold": "2000"}) == {
        "targetLag": "is 2000, by default; this tenant allows at most 100: set such a value, or ask a "
        "platform administrator to change the tenant's policyLimits"
    }
    assert broken(made, {"targetLag": "50"})["lagThreshold"].startswith("is 500, by default;")
    assert broken(rules({"windowSize": {"min": "50"}}), {}) == {}


def test_off_is_above_every_bound_and_can_be_allowed() -> None:
    assert "is off" in broken(rules({"stuckAfterSeconds": {"max": "600"}}), {})["stuckAfterSeconds"]
    assert broken(rules({"stuckAfterSeconds": {"min": "600"}}), {}) == {}
    assert broken(rules({"stuckAfterSeconds": {"allowed": ["off", "600"]}}), {"stuckAfterSeconds": "600.0"}) == {}


def test_what_was_there_before_passes() -> None:
    made = rules({"lagThreshold": {"min": "1000"}, "holdSeconds": {"max": "60"}})
    before = made.policy({"lagThreshold": "5"}, tick_seconds=1.0, minimum_interval=1)
    assert set(broken(made, {"lagThreshold": "5"}, before)) == set()
    assert set(broken(made, {"lagThreshold": "5", "holdSeconds": "61"}, before)) == {"holdSeconds"}


def test_a_fault_of_the_defaults_says_that_it_comes_from_them() -> None:
    made = rules({}, {"limitToPartitionsWithLag": "true"})
    with pytest.raises(InvalidInput, match="policyDefaults: limitToPartitionsWithLag; set a key to override it"):
        made.policy({"allowIdleConsumers": "true"}, tick_seconds=1.0, minimum_interval=1)


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        ({"lagTreshold": {"min": "1"}}, "policyLimits.lagTreshold"),
        ({"lagThreshold": {}}, "policyLimits.lagThreshold"),
        ({"lagThreshold": {"min": None}}, "policyLimits.lagThreshold"),
        ({"lagThreshold": {"min": "x"}}, "policyLimits.lagThreshold.min"),
        ({"lagThreshold": {"min": "-1"}}, "policyLimits.lagThreshold.min"),
        ({"lagThreshold": {"min": "5", "max": "4"}}, "policyLimits.lagThreshold.max"),
        ({"lagThreshold": {"min": "5", "fixed": "6"}}, "policyLimits.lagThreshold.fixed"),
        ({"lagThreshold": {"allowed": []}}, "policyLimits.lagThreshold.allowed"),
        ({"lagThreshold": {"allowed": ["0"]}}, "policyLimits.lagThreshold.allowed"),
        ({"lagThreshold": {"fixed": "1.5"}}, "policyLimits.lagThreshold.fixed"),
        ({"samplingInterval": {"fixed": "4000"}}, "policyLimits.samplingInterval.fixed"),
        ({"metric": {"min": "1"}}, "policyLimits.metric.min"),
        ({"metric": {"fixed": "seconds"}}, "policyLimits.metric.fixed"),
        ({"allowIdleConsumers": {"fixed": "yes"}}, "policyLimits.allowIdleConsumers.fixed"),
        ({"partitionLimitation": {"fixed": "5-1"}}, "policyLimits.partitionLimitation.fixed"),
        ({"stuckAfterSeconds": {"fixed": "never"}}, "policyLimits.stuckAfterSeconds.fixed"),
    ],
)
def test_a_fault_of_a_limit_names_its_field(limits: Mapping[str, Mapping[str, object]], field: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        rules(limits)
    assert [field_error.field for field_error in raised.value.field_errors] == [field]


@pytest.mark.parametrize(
    ("defaults", "limits", "field"),
    [
        ({"sustainSeconds": "soon"}, {}, "policyDefaults.sustainSeconds"),
        ({"allowIdleConsumers": "true", "limitToPartitionsWithLag": "true"}, {}, "limitToPartitionsWithLag"),
        ({"sustainSeconds": "30"}, {"sustainSeconds": {"min": "60"}}, "policyDefaults.sustainSeconds"),
    ],
)
def test_defaults_must_stand_together_and_within_the_limits(
    defaults: Mapping[str, str], limits: Mapping[str, Mapping[str, object]], field: str
) -> None:
    [field_error] = rules(limits, defaults).own_faults(tick_seconds=1.0, minimum_interval=1)
    assert field_error.field.endswith(field)
    assert rules({}, {"sustainSeconds": "30"}).own_faults(tick_seconds=1.0, minimum_interval=1) == []


@pytest.mark.parametrize(
    ("defaults", "limits"),
    [({"sustainSecond": "30"}, {}), ({"metric": "lag"}, {"metric": {"fixed": "timeLag"}})],
)
def test_a_default_that_cannot_be_is_a_fault(
    defaults: Mapping[str, str], limits: Mapping[str, Mapping[str, object]]
) -> None:
    with pytest.raises(InvalidInput) as raised:
        rules(limits, defaults)
    assert [field_error.field for field_error in raised.value.field_errors] == [
        f"policyDefaults.{next(iter(defaults))}"
    ]


@pytest.mark.parametrize(
    ("name", "text", "form"),
    [
        ("lagThreshold", "+0500", "500"),
        ("targetLag", "1.50", "1.5"),
        ("targetLag", "1e3", None),
        ("targetLag", "1.2.3", None),
        ("allowIdleConsumers", "True", "true"),
        ("partitionLimitation", "5-8, 1 ,3", "1,3,5-8"),
        ("partitionLimitation", "all", "all"),
        ("workSeconds", "1000000000000000", None),
    ],
)
def test_a_value_has_one_form(name: str, text: str, form: str | None) -> None:
    assert normalize_value(KEYS_BY_NAME[name], text) == form
