"""The one table of keys: it covers every field of a policy, and defaults are written in it alone."""

from __future__ import annotations

from dataclasses import fields

import pytest

from lagscale.domain.policy.keys import ALL, KEYS, Derived, PolicyKey, describe_keys
from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.policy.policy import Policy


def test_every_field_of_a_policy_has_one_key() -> None:
    assert sorted(key.field for key in KEYS if key.field is not None) == sorted(field.name for field in fields(Policy))


@pytest.mark.parametrize("key", [key for key in KEYS if isinstance(key.default, str)], ids=lambda key: str(key.name))
def test_a_default_can_be_set_explicitly(key: PolicyKey) -> None:
    text = "" if key.default == ALL else str(key.default)
    assert parse_policy({key.name: text}) == parse_policy({})


def test_derived_defaults_follow_the_keys_that_they_name() -> None:
    policy = parse_policy({"lagThreshold": "7", "samplingInterval": "20", "sustainSeconds": "0"})
    assert (policy.target_lag, policy.max_gap_ms, policy.stale_after_ms) == (7.0, 50_000, 60_000)
    assert (policy.activation_sustain_ms, policy.work_ms) == (0, 0)
    assert {key.name for key in KEYS if isinstance(key.default, Derived)} == {
        "targetLag",
        "maxGapSeconds",
        "staleAfterSeconds",
        "activationSustainSeconds",
        "workSeconds",
    }


def test_the_description_names_every_key_with_its_default() -> None:
    text = describe_keys()
    for key in KEYS:
        assert f"`{key.name}`: {key.value_type.value}, default {key.default_text}" in text


def test_places_in_the_verdicts_parameter_are_those_of_its_type() -> None:
    # Besides the keys: request, tenant, targets, both times, and the lookback.
    places = [0, 1, 2, 3, 4, 13, *(key.ask for key in KEYS if key.ask is not None)]
    assert sorted(places) == list(range(24))
