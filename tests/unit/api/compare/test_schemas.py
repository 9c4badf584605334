"""Query and answer of a comparison have the keys of KEDA's trigger, each under its name there."""

from __future__ import annotations

from dataclasses import fields

from pydantic.alias_generators import to_camel

from lagscale.domain.explain.keda_kafka import KafkaTrigger
from lagscale.domain.policy.keda_keys import KEDA_KEYS
from lagscale.domain.policy.policy import OffsetResetPolicy
from services.api.compare.schemas import CompareQuery, KedaTriggerOut

KEYS = [field.name for field in fields(KafkaTrigger)]


def test_the_query_and_the_answer_have_the_keys_of_the_simulated_trigger() -> None:
    assert list(KedaTriggerOut.model_fields) == KEYS
    assert [name for name in CompareQuery.model_fields if name in KEYS] == KEYS


def test_each_key_has_the_name_and_the_default_of_keda() -> None:
    shown = KedaTriggerOut(**{name: getattr(KafkaTrigger(), name) for name in KEYS}).model_dump(mode="json")
    defaults = {name: KEDA_KEYS[to_camel(name)].default for name in KEYS}
    assert {name: str(value).lower() for name, value in shown.items()} == defaults


def test_only_given_keys_are_set() -> None:
    query = CompareQuery.model_validate({"lagThreshold": "7", "offsetResetPolicy": "earliest", "hours": "2"})
    assert query.keys == {"lag_threshold": 7, "offset_reset_policy": OffsetResetPolicy.EARLIEST}
    assert query.keys["offset_reset_policy"] is OffsetResetPolicy.EARLIEST
