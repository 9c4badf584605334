"""A tenant's defaults and limits applied to triggers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from lagscale.domain.policy.keys import KEYS_BY_NAME
from lagscale.errors import InvalidInput, NotFound
from lagscale.store.registrations.load import Registrations, TenantEntry
from services.scaler.triggers.directory import MonitorDirectory, ResolvedTrigger
from services.scaler.triggers.metadata import TriggerReader
from tests.unit.domain.policy.test_tenant_rules import OTHERS
from tests.unit.scaler.triggers.test_directory import INLINE, monitor, only

OPEN = TenantEntry(1, "acme", True, 1, 1000, {"main": ("kafka-0:9092",)}, version=5)
BOUND = {("default", "shop"): 1}


def resolve(
    metadata: dict[str, str],
    *monitors: Any,
    defaults: Mapping[str, str] | None = None,
    limits: Mapping[str, Mapping[str, object]] | None = None,
    **facts: Any,
) -> ResolvedTrigger:
    tenant = replace(OPEN, policy_defaults=defaults or {}, policy_limits=limits or {}, **facts)
    reader = TriggerReader(1.0)
    directory = MonitorDirectory(Registrations(7, (tenant,), monitors, BOUND), reader)
    return directory.resolve(reader.read(metadata), "default", "shop", "worker")


def refused(*args: Any, **facts: Any) -> dict[str, str]:
    with pytest.raises(InvalidInput) as raised:
        resolve(*args, **facts)
    return {field_error.field: field_error.text for field_error in raised.value.field_errors}


@pytest.mark.parametrize("name", sorted(KEYS_BY_NAME))
def test_an_inline_trigger_takes_every_default(name: str) -> None:
    value, beside = OTHERS[name]
    subject = only(resolve(INLINE, defaults={name: value, **beside}))
    assert subject.inline is not None
    assert subject.inline.spec.effective_policy == {name: value, **beside}
    assert subject.inline.spec.given == {}
    assert subject.policy == subject.inline.spec.policy
    assert subject.name == only(resolve(INLINE)).name, "the metric's name does not depend on the tenant's rules"


@pytest.mark.parametrize("name", sorted(KEYS_BY_NAME))
def test_an_inline_trigger_is_checked_against_every_limit(name: str) -> None:
    value, beside = OTHERS[name]
    other = "3" if name != "partitionLimitation" else "7"
    limit: Mapping[str, object] = {
        "allowed": [other if not KEYS_BY_NAME[name].choices else KEYS_BY_NAME[name].choices[0]]
    }
    if value in {"true", "false"}:
        limit = {"allowed": ["false"]}
    found = refused({**INLINE, name: value, **beside}, limits={name: limit})
    assert set(found) == {name}
    assert "platform administrator" in found[name]


def test_a_default_of_partitions_needs_one_topic() -> None:
    found = refused({**INLINE, "topic": "a,b"}, defaults={"partitionLimitation": "1-3"})
    assert set(found) == {"partitionLimitation"}


def test_registered_monitors_stay_valid_under_new_limits() -> None:
    trigger = {"cluster": "main", "consumerGroup": "group", "topic": "ingest", "lagThreshold": "5"}
    known = monitor(1, "ingest", lagThreshold="5")
    subject = only(resolve(trigger, known, limits={"lagThreshold": {"min": "100"}}, min_sampling_seconds=30))
    assert (subject.monitor_id, subject.policy.lag_threshold) == (1, 5)
    assert set(refused(trigger, limits={"lagThreshold": {"min": "100"}})) == {"lagThreshold"}


def test_overrides_are_checked_against_limits_and_the_registration_is_not() -> None:
    known = monitor(1, "ingest", overridable=True, lagThreshold="5")
    limits = {"lagThreshold": {"min": "100"}, "sustainSeconds": {"max": "60"}}
    assert set(refused({"serviceType": "ingest", "sustainSeconds": "61"}, known, limits=limits)) == {"sustainSeconds"}
    subject = only(resolve({"serviceType": "ingest", "sustainSeconds": "60"}, known, limits=limits))
    assert subject.policy.lag_threshold == 5
    assert set(refused({"serviceType": "ingest", "lagThreshold": "6"}, known, limits=limits)) == {"lagThreshold"}


def test_a_tenant_that_registers_nothing_itself_says_so_first() -> None:
    with pytest.raises(NotFound):
        resolve({**INLINE, "lagThreshold": "5"}, limits={"lagThreshold": {"min": "100"}}, auto_register=False)


def test_inline_monitors_are_registered_with_their_requester() -> None:
    subject = only(resolve(INLINE))
    assert subject.inline is not None
    assert subject.inline.registered_by == {"instance": "default", "namespace": "shop", "scaled_object": "worker"}
    assert subject.inline.tenant_version == 5


def test_invalid_rules_are_ignored() -> None:
    with capture_logs() as lines:
        subject = only(resolve(INLINE, limits={"keyOfTomorrow": {"min": "1"}}))
    assert subject.policy.lag_threshold == 500
    assert [line["event"] for line in lines] == ["stored_tenant_rules_invalid"]
