"""Trigger metadata: what is parsed, what is rejected, and what is never stored."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from lagscale.domain.tenancy import MAX_GROUP_BYTES
from lagscale.domain.topics import TopicScope
from lagscale.errors import InvalidInput
from services.api.monitors.schemas import MonitorIn
from services.scaler.triggers.metadata import (
    EXTERNAL_SCALER_KEYS,
    IGNORED_KEYS,
    TriggerMetadata,
    TriggerReader,
)

GROUP = {"cluster": "main", "consumerGroup": "orders"}
INLINE = {**GROUP, "topic": "orders.created"}


def read(metadata: Mapping[str, str], tick_seconds: float = 5.0) -> TriggerMetadata:
    return TriggerReader(tick_seconds).read(metadata)


def faults_of(metadata: Mapping[str, str]) -> dict[str, str]:
    with pytest.raises(InvalidInput) as raised:
        read(metadata)
    return {field_error.field: field_error.text for field_error in raised.value.field_errors}


def test_whitespace_around_a_value_is_ignored() -> None:
    trigger = read({**INLINE, "lagThreshold": " 100 ", "topic": " orders.created "})
    assert trigger.scope == TopicScope(("orders.created",))
    assert TriggerReader(5.0).resolve_policy(trigger, 1).lag_threshold == 100


@pytest.mark.parametrize("text", ["abc", "-1", "0", "1.5"])
def test_a_bad_threshold_names_the_key(text: str) -> None:
    assert set(faults_of({**INLINE, "lagThreshold": text})) == {"lagThreshold"}


def test_two_faults_are_reported_together() -> None:
    assert set(faults_of({**INLINE, "lagThreshold": "abc", "sustainSeconds": "-1"})) == {
        "lagThreshold",
        "sustainSeconds",
    }


def test_faults_of_the_trigger_and_of_the_policy_are_reported_together() -> None:
    assert set(faults_of({"cluster": "main", "lagTreshold": "5", "samplingInterval": "x"})) == {
        "consumerGroup",
        "lagTreshold",
        "samplingInterval",
    }


def test_a_typo_suggests_the_nearest_key() -> None:
    assert "lagThreshold" in faults_of({"serviceType": "ingest-logs", "lagTreshold": "5"})["lagTreshold"]


def test_a_typo_before_from_env_is_reported() -> None:
    assert "did you mean topic" in faults_of({**INLINE, "topcFromEnv": "x"})["topcFromEnv"]


@pytest.mark.parametrize(
    "name",
    [*EXTERNAL_SCALER_KEYS, *(set(IGNORED_KEYS) - {"excludePersistentLag"}), "somethingElse", "versionFromEnv"],
)
def test_keys_of_keda_and_other_unknown_keys_are_ignored(name: str) -> None:
    assert read({**INLINE, name: "whatever"}).given == {}


def test_from_env_counts_when_the_key_is_absent() -> None:
    assert read({"cluster": "main", "consumerGroup": "orders", "topicFromEnv": "from-env"}).scope.topics == (
        "from-env",
    )
    assert read({**INLINE, "topicFromEnv": "from-env"}).scope.topics == ("orders.created",)


@pytest.mark.parametrize("text", ["1", "t", "T", "TRUE", "true", "True"])
def test_flags_are_those_that_keda_accepts(text: str) -> None:
    flags = dict.fromkeys(("allowIdleConsumers", "scaleToZeroOnInvalidOffset"), text)
    policy = TriggerReader(5.0).resolve_policy(read({**INLINE, **flags}), 1)
    assert policy.allow_idle_consumers
    assert policy.scale_to_zero_on_invalid_offset
    assert "stuckAfterSeconds" in faults_of({**INLINE, "excludePersistentLag": text})["excludePersistentLag"]


@pytest.mark.parametrize("text", ["0", "f", "F", "FALSE", "false", "False"])
def test_flags_that_are_false(text: str) -> None:
    trigger = read({**INLINE, "allowIdleConsumers": text, "excludePersistentLag": text})
    assert not TriggerReader(5.0).resolve_policy(trigger, 1).allow_idle_consumers


@pytest.mark.parametrize("text", ["tRue", "yes", "on", "2"])
def test_other_flags_are_errors(text: str) -> None:
    flags = dict.fromkeys(("allowIdleConsumers", "excludePersistentLag"), text)
    faults = faults_of({**INLINE, **flags})
    assert faults == {name: f"must be true or false, not {text!r}" for name in flags}


def test_no_topic_means_all_topics_of_the_group() -> None:
    trigger = read({**GROUP, "excludeTopics": " b.*, a,, a"})
    assert trigger.scope == TopicScope((), None, ("a", "b.*"))
    assert trigger.scope_keys == ("cluster", "consumerGroup", "excludeTopics")


def test_a_pattern_replaces_a_topic() -> None:
    trigger = read({**GROUP, "topicPattern": " orders\\..* ", "excludeTopics": "orders.test"})
    assert trigger.scope == TopicScope((), "orders\\..*", ("orders.test",))
    assert "combined with topic" in faults_of({**INLINE, "topicPattern": "x"})["topicPattern"]
    assert "not of topic" in faults_of({**INLINE, "excludeTopics": "x"})["excludeTopics"]


@pytest.mark.parametrize("pattern", ["orders(", "a{1001}", "(?=x)", "x" * 301, "bücher", "(?:a?b?c?){300}x"])
def test_a_pattern_that_cannot_be_matched_in_time_is_rejected(pattern: str) -> None:
    assert set(faults_of({**GROUP, "topicPattern": pattern})) == {"topicPattern"}
    assert set(faults_of({**GROUP, "excludeTopics": pattern + "*"})) == {"excludeTopics"}


def test_several_services_are_read_in_their_order() -> None:
    assert read({"serviceType": "b-logs, a-logs,,b-logs"}).services == ("b-logs", "a-logs")


@pytest.mark.parametrize(
    "name", ["cluster", "bootstrapServers", "consumerGroup", "topic", "topicPattern", "excludeTopics"]
)
def test_scope_keys_cannot_be_combined_with_a_service(name: str) -> None:
    assert "combined with serviceType" in faults_of({"serviceType": "ingest-logs", name: "x"})[name]


def test_an_empty_trigger_is_told_what_to_set() -> None:
    assert "must name a registered monitor" in faults_of({"scalerAddress": "http://host"})["serviceType"]


def test_a_limitation_needs_one_topic() -> None:
    assert (
        "exactly one topic"
        in faults_of({**INLINE, "topic": "a,b", "partitionLimitation": "1-3"})["partitionLimitation"]
    )


@pytest.mark.parametrize("scope", [{}, {"topicPattern": "orders.*"}])
def test_a_limitation_needs_a_listed_topic(scope: dict[str, str]) -> None:
    assert "exactly one topic" in faults_of({**GROUP, **scope, "partitionLimitation": "1"})["partitionLimitation"]


def test_equal_metadata_is_parsed_once_and_credentials_are_not_stored() -> None:
    hits: list[bool] = []
    reader = TriggerReader(5.0, hits.append)
    first = reader.read({**INLINE, "password": "hunter-1"})
    second = reader.read({**INLINE, "password": "hunter-2"})
    assert first is second
    assert hits == [False, True]
    assert "hunter" not in repr(vars(reader))


def test_long_metadata_is_not_cached() -> None:
    hits: list[bool] = []
    reader = TriggerReader(5.0, hits.append)
    for _ in range(2):
        assert len(reader.read({**INLINE, "topic": "x" * 9000}).scope.topics) == 1
    assert hits == [False, False]


def test_errors_are_cached() -> None:
    reader = TriggerReader(5.0)
    for _ in range(2):
        with pytest.raises(InvalidInput, match="lagThreshold"):
            reader.read({**INLINE, "lagThreshold": "x"})


def test_an_interval_below_the_tick_or_the_tenants_minimum_is_rejected() -> None:
    assert "tick" in faults_of({**INLINE, "samplingInterval": "2"})["samplingInterval"]
    reader = TriggerReader(5.0)
    trigger = reader.read({**INLINE, "samplingInterval": "10"})
    with pytest.raises(InvalidInput, match="minimum of 30"):
        reader.resolve_policy(trigger, 30)


def test_a_group_has_the_same_limit_at_all_doors() -> None:
    longest = "g" * MAX_GROUP_BYTES
    assert read({**INLINE, "consumerGroup": longest}).group == longest
    assert MonitorIn(cluster="main", consumer_group=longest).consumer_group == longest
    for group in (f"{longest}g", "\u00e4" * (MAX_GROUP_BYTES // 2 + 1)):
        assert faults_of({**INLINE, "consumerGroup": group})["consumerGroup"] == "must be at most 2,048 bytes"
        with pytest.raises(ValueError, match="must be at most 2,048 bytes"):
            MonitorIn(cluster="main", consumer_group=group)
