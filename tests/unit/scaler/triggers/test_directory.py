"""Resolving a caller's trigger: bindings, names, overrides, and inline triggers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.tenancy import compute_content_hash, is_name
from lagscale.errors import InvalidInput, LagscaleError, NotFound
from lagscale.store.registrations.load import Registration, Registrations, TenantEntry
from services.scaler.triggers.directory import MonitorDirectory, ResolvedMonitor, ResolvedTrigger
from services.scaler.triggers.metadata import TriggerReader

INLINE = {"cluster": "main", "consumerGroup": "lakerunner.ingest", "topic": "objstore.logs"}
OURS = TenantEntry(1, "acme", False, 1, 1000, {"main": ("kafka-0:9092", "kafka-1:9092"), "twin": ("kafka-9:9092",)})
THEIRS = TenantEntry(2, "other", True, 1, 1000, {"main": ("kafka-7:9092",)})


def monitor(number: int, name: str, tenant: int = 1, *, overridable: bool = False, **given: str) -> Registration:
    digest = compute_content_hash("main", "group", [name], given)
    policy = parse_policy(given)
    return Registration(
        number, tenant, name, "main", "group", (name,), policy, given, (number,), overridable, digest, 1
    )


MONITORS = (
    monitor(1, "ingest-logs", lagThreshold="100"),
    monitor(2, "ingest-metrics", overridable=True, sustainSeconds="60"),
    monitor(3, "ingest-secret", tenant=2),
)
BINDINGS = {("default", "shop"): 1, ("default", "elsewhere"): 2}
ALL = Registrations(7, (OURS, THEIRS), MONITORS, BINDINGS)


def resolve(metadata: dict[str, str], namespace: str = "shop", registrations: Registrations = ALL) -> ResolvedTrigger:
    reader = TriggerReader(5.0)
    return MonitorDirectory(registrations, reader).resolve(reader.read(metadata), "default", namespace)


def only(resolved: ResolvedTrigger) -> ResolvedMonitor:
    (entry,) = resolved.entries
    assert isinstance(entry, ResolvedMonitor)
    return entry


def refused(metadata: dict[str, str], namespace: str = "shop") -> LagscaleError:
    with pytest.raises(LagscaleError) as raised:
        list(resolve(metadata, namespace).iter_monitors())
    return raised.value


def test_a_service_is_found_for_its_bound_namespace() -> None:
    resolved = only(resolve({"serviceType": "ingest-logs"}))
    assert (resolved.name, resolved.tenant_id, resolved.policy.lag_threshold) == ("ingest-logs", 1, 100)


def test_a_trigger_with_the_wrong_tenant_is_told_to_check_it() -> None:
    message = refused({**INLINE, "tenant": "other"}).message
    assert "that `tenant`, if the trigger has it, names that one" in message
    assert message == refused({**INLINE, "tenant": "nobody"}).message
    assert message == refused(INLINE, namespace="unbound").message


def test_foreign_missing_and_unbound_are_byte_for_byte_the_same() -> None:
    texts = {
        refused({"serviceType": "zzz-nowhere"}).message,
        refused({"serviceType": "zzz-nowhere"}, "unbound").message,
        refused({"serviceType": "zzz-nowhere", "tenant": "other"}).message,
    }
    assert len(texts) == 1
    foreign = refused({"serviceType": "ingest-secret"}).message
    missing = refused({"serviceType": "ingest-sekret"}).message
    assert foreign.replace("ingest-secret", "ingest-sekret") == missing


def test_suggested_names_are_the_tenants_own() -> None:
    text = refused({"serviceType": "ingest-log"}).message
    assert "ingest-logs" in text
    assert "secret" not in text


def test_the_tenant_key_must_agree() -> None:
    assert only(resolve({"serviceType": "ingest-logs", "tenant": "acme"})).tenant == "acme"
    assert isinstance(refused({"serviceType": "ingest-logs", "tenant": "other"}), NotFound)


def test_a_binding_of_all_namespaces_excludes_the_others() -> None:
    whole = replace(ALL, bindings={**BINDINGS, ("default", "*"): 2})
    assert only(resolve({"serviceType": "ingest-secret"}, "shop", whole)).tenant_id == 2


def test_several_services_give_several_metrics() -> None:
    resolved = resolve({"serviceType": "ingest-metrics,ingest-logs"})
    assert [resolved.name for resolved in resolved.iter_monitors()] == ["ingest-metrics", "ingest-logs"]


def test_one_missing_among_several_leaves_the_others_their_metrics() -> None:
    resolved = resolve({"serviceType": "ingest-logs,gone"})
    assert resolved.find_metric("s0-ingest-logs").name == "ingest-logs"
    with pytest.raises(NotFound):
        resolved.find_metric("gone")
    with pytest.raises(NotFound):
        list(resolved.iter_monitors())


@pytest.mark.parametrize("name", ["ingest-logs", "s0-ingest-logs", "S1-INGEST-LOGS"])
def test_a_metric_is_found_with_and_without_kedas_index(name: str) -> None:
    assert resolve({"serviceType": "ingest-logs"}).find_metric(name).name == "ingest-logs"


def test_overrides_are_rejected_unless_the_monitor_is_overridable() -> None:
    assert "overridable" in refused({"serviceType": "ingest-logs", "lagThreshold": "7"}).message
    resolved = only(resolve({"serviceType": "ingest-metrics", "lagThreshold": "7"}))
    assert (resolved.policy.lag_threshold, resolved.policy.sustain_ms) == (7, 60_000)


@pytest.mark.parametrize(
    ("name", "text"),
    [("samplingInterval", "20"), ("partitionLimitation", "1"), ("isolationLevel", "read_committed"),
     ("offsetResetPolicy", "earliest")],
)  # fmt: skip
def test_keys_that_affect_sampling_are_never_overridable(name: str, text: str) -> None:
    error = refused({"serviceType": "ingest-metrics", name: text})
    assert isinstance(error, InvalidInput)
    assert name in error.message


def test_an_override_is_another_request_to_the_store() -> None:
    plain = only(resolve({"serviceType": "ingest-metrics"}))
    other = only(resolve({"serviceType": "ingest-metrics", "lagThreshold": "7"}))
    assert plain.key != other.key
    assert plain.monitor_id == other.monitor_id


def test_an_inline_trigger_is_answered_by_a_monitor_of_its_content() -> None:
    digest = compute_content_hash("main", INLINE["consumerGroup"], [INLINE["topic"]], {})
    same = replace(MONITORS[0], content_hash=digest, name="named-by-hand")
    resolved = only(resolve(INLINE, registrations=replace(ALL, monitors=(same,))))
    assert resolved.monitor_id == 1
    assert resolved.name == f"lakerunner-ingest-objstore-logs-{digest[:8]}"
    assert is_name(resolved.name)


def test_an_inline_trigger_without_a_monitor_is_missing_unless_the_tenant_allows_it() -> None:
    assert isinstance(refused(INLINE), NotFound)
    resolved = only(resolve(INLINE, "elsewhere"))
    assert resolved.request is None
    assert resolved.inline is not None
    assert resolved.inline.spec.topics == ("objstore.logs",)


def test_bootstrap_servers_mean_one_cluster_in_any_order() -> None:
    by_address = {
        "bootstrapServers": "kafka-1:9092, kafka-0:9092",
        "consumerGroup": INLINE["consumerGroup"],
        "topic": INLINE["topic"],
    }
    allowed = replace(ALL, tenants=(replace(OURS, auto_register=True),))
    assert only(resolve(by_address, registrations=allowed)).name == only(resolve(INLINE, registrations=allowed)).name
    part = {**by_address, "bootstrapServers": "kafka-1:9092"}
    with pytest.raises(NotFound):
        resolve(part, registrations=allowed)


def test_two_clusters_with_the_same_addresses_need_a_name() -> None:
    twins = replace(OURS, auto_register=True, clusters={"a": ("kafka-0:9092",), "b": ("kafka-0:9092",)})
    with pytest.raises(InvalidInput, match="a or b"):
        resolve(
            {"bootstrapServers": "kafka-0:9092", "consumerGroup": "g", "topic": "t"},
            registrations=replace(ALL, tenants=(twins,)),
        )


def test_cluster_and_addresses_must_agree() -> None:
    error = refused({**INLINE, "bootstrapServers": "kafka-9:9092"})
    assert isinstance(error, InvalidInput)
    assert "kafka" not in error.message


def test_an_inline_name_fits_into_a_metric_name_however_long_the_topics_are() -> None:
    allowed = replace(ALL, tenants=(replace(OURS, auto_register=True),))
    name = only(resolve({**INLINE, "topic": "X" * 200 + ",--"}, registrations=allowed)).name
    assert is_name(name)
    assert len(name) <= 63


@pytest.mark.parametrize(
    ("scope", "pattern", "exclude", "begins"),
    [
        ({"topicPattern": "orders\\..*", "excludeTopics": "b,a"}, "orders\\..*", ("a", "b"), "g-orders-"),
        ({}, None, (), "g-"),
    ],
)
def test_an_inline_trigger_without_a_list_is_another_monitor(
    scope: dict[str, str], pattern: str | None, exclude: tuple[str, ...], begins: str
) -> None:
    resolved = only(resolve({"cluster": "main", "consumerGroup": "g", **scope}, "elsewhere"))
    assert resolved.inline is not None
    assert (resolved.inline.spec.topics, resolved.inline.spec.scope.pattern, resolved.inline.spec.scope.exclude) == (
        (),
        pattern,
        exclude,
    )
    assert resolved.inline.spec.content == compute_content_hash("main", "g", (), {}, pattern=pattern, exclude=exclude)
    assert resolved.name == f"{begins}{resolved.inline.spec.content[:8]}"
    found = replace(MONITORS[2], content_hash=resolved.inline.spec.content, topics=("orders.a", "orders.b"))
    known = only(
        resolve({"cluster": "main", "consumerGroup": "g", **scope}, "elsewhere", replace(ALL, monitors=(found,)))
    )
    assert (known.monitor_id, known.topics) == (3, {3: "orders.a"})


@pytest.mark.parametrize(
    ("namespace", "actor"),
    [
        ("elsewhere", "keda default/elsewhere"),
        ("a\x00b\n", "keda default/ab"),
        ("x" * 500, f"keda default/{'x' * 253}"),
    ],
)
def test_who_has_a_monitor_created_is_named_for_the_audit(namespace: str, actor: str) -> None:
    registrations = replace(ALL, bindings={("default", "*"): 2})
    inline = only(resolve(INLINE, namespace, registrations)).inline
    assert inline is not None
    assert inline.actor == actor
