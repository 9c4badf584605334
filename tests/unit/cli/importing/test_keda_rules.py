"""Where KEDA's own rules decide what an import takes, drops and rejects."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import yaml

from services.cli.importing.conversion import convert_all
from services.cli.importing.options import ImportOptions, TriggerOptions
from services.cli.importing.output import build_files
from services.cli.importing.yaml_text import parse_documents

KAFKA = {"bootstrapServers": "kafka.shop.svc:9092", "consumerGroup": "orders", "topic": "orders"}


def scaled(metadata: dict[str, str], *, authentication: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    trigger: dict[str, Any] = {"type": "kafka", "name": "lag", "metadata": KAFKA | metadata}
    trigger |= {"authenticationRef": authentication} if authentication else {}
    whole = {"scaleTargetRef": {"name": "orders"}, "minReplicaCount": 1, "triggers": [trigger], **spec}
    return manifest("keda.sh/v1alpha1", "ScaledObject", "orders", "shop", spec=whole)


def manifest(version: str, kind: str, name: str, namespace: str, **parts: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, **parts}


def authentication(*parameters: str, kind: str = "TriggerAuthentication") -> dict[str, Any]:
    entries = [{"parameter": name, "name": "kafka", "key": name} for name in parameters]
    return manifest("keda.sh/v1alpha1", kind, "kafka", "shop", spec={"secretTargetRef": entries})


def secret(namespace: str, **values: str) -> dict[str, Any]:
    data = {name: base64.b64encode(text.encode()).decode() for name, text in values.items()}
    return manifest("v1", "Secret", "kafka", namespace, data=data)


def imported(*documents: dict[str, Any], **options: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Report, spec of the cluster and spec of the monitor; both empty if the object is not converted."""
    parsed = list(parse_documents(yaml.safe_dump_all(documents), "manifests.yaml"))
    asked = ImportOptions(TriggerOptions(), **options)
    texts, report = build_files(convert_all(parsed, asked), asked, "out")
    cluster, monitor = (
        yaml.safe_load(texts.get(f"register/{name}.yaml", "spec: {}"))["spec"]
        for name in ("10-clusters", "20-monitors")
    )
    return report, cluster, monitor


def reasons(report: dict[str, Any]) -> dict[str, str]:
    return {one["key"]: f"{one['outcome']}: {one['reason']}" for one in report["objects"][0]["keys"]}


def deployment(**variables: str) -> dict[str, Any]:
    env = [{"name": name, "value": text} for name, text in variables.items()]
    pod = {"containers": [{"name": "app", "image": "app", "env": env}]}
    return manifest("apps/v1", "Deployment", "orders", "shop", spec={"template": {"spec": pod}})


def test_a_plain_key_takes_precedence_over_its_variable() -> None:
    keys = {"topicFromEnv": "TOPIC", "consumerGroupFromEnv": "GROUP", "topic": "orders-dev"}
    report, _, monitor = imported(deployment(TOPIC="orders-v2", GROUP="orders-v2"), scaled(keys))
    assert (monitor["topics"], monitor["consumerGroup"]) == (["orders-dev"], "orders")
    dropped = reasons(report)["triggers[0].metadata.topicFromEnv"]
    assert dropped == "dropped: topic takes precedence; KEDA before 2.20 took topicFromEnv"
    assert any("KEDA before 2.20 took topicFromEnv" in text for text in report["objects"][0]["warnings"])


def test_a_blank_plain_key_counts_as_absent() -> None:
    report, _, monitor = imported(deployment(TOPIC="orders-v2"), scaled({"topicFromEnv": "TOPIC", "topic": " "}))
    assert monitor["topics"] == ["orders-v2"]
    assert reasons(report)["triggers[0].metadata.topic"].startswith("dropped: empty")


def test_sasl_and_tls_of_the_trigger_take_precedence_over_its_authentication() -> None:
    given = authentication("sasl", "tls", "username", "password")
    kafka = secret("shop", sasl="scram_sha512", tls="disable", username="orders", password="canary")
    asked = scaled({"sasl": "plaintext", "tls": "enable"}, authentication={"name": "kafka"})
    report, cluster, _ = imported(kafka, given, asked)
    assert report["summary"]["notConverted"] == 0
    assert (cluster["security"]["sasl"], cluster["security"]["tls"]) == ("plaintext", "enable")
    for name in ("sasl", "tls"):
        dropped = reasons(report)[f"triggers[0].authenticationRef.{name}"]
        assert dropped.startswith("dropped: the value in the trigger takes precedence")


def test_policy_keys_of_an_authentication_are_not_read() -> None:
    report, _, monitor = imported(
        authentication("lagThreshold"), scaled({}, authentication={"name": "kafka"}), secret("shop", lagThreshold="99")
    )
    assert monitor["policy"]["lagThreshold"] == 10
    assert (
        reasons(report)["triggers[0].authenticationRef.lagThreshold"] == "dropped: KEDA reads it from the trigger only"
    )


def test_certificates_in_the_metadata_are_not_read_and_are_no_error() -> None:
    report, cluster, _ = imported(scaled({"tls": "enable", "ca": "CA", "cert": "CERT", "key": "canary-key"}))
    (one,) = report["objects"]
    assert (one["errors"], cluster["security"]) == ([], {"tls": "enable"})
    for name, part in (("ca", "security.ca"), ("cert", "security.cert"), ("key", "secrets.key")):
        assert "KEDA reads it from a TriggerAuthentication only" in reasons(report)[f"triggers[0].metadata.{name}"]
        assert any(f"KEDA does not read {name} here" in text and part in text for text in one["tasks"])


def test_a_certificate_without_its_key_in_an_authentication_is_an_error() -> None:
    report, _, _ = imported(authentication("cert"), scaled({"tls": "enable"}, authentication={"name": "kafka"}))
    assert "cert and key must be given together" in report["objects"][0]["errors"][0]


@pytest.mark.parametrize("spec", [{"minReplicaCount": 0}, {"minReplicaCount": 1, "idleReplicaCount": 0}])
def test_a_formula_that_activates_alone_is_a_task(spec: dict[str, int]) -> None:
    modifiers = {"scalingModifiers": {"formula": "lag", "target": "1", "activationTarget": "5"}}
    (task,) = imported(scaled({}, advanced=modifiers, **spec))[0]["objects"][0]["tasks"]
    assert "compares the formula's value with activationTarget (5)" in task
    assert "never activates" in task


def test_a_formula_above_zero_is_no_task() -> None:
    modifiers = {"scalingModifiers": {"formula": "lag", "target": "1"}}
    assert imported(scaled({}, advanced=modifiers))[0]["objects"][0]["tasks"] == []


def test_idle_replicas_are_as_open_to_the_race_as_a_minimum_of_zero() -> None:
    fallback = {"failureThreshold": 10, "replicas": 50}
    report, _, _ = imported(scaled({}, idleReplicaCount=0, maxReplicaCount=1800, fallback=fallback))
    (race,) = (text for text in report["objects"][0]["warnings"] if "2.20.2" in text)
    assert race.startswith("At idleReplicaCount 0 an error does not keep the replicas")
    assert "the fallback does not prevent this; remove idleReplicaCount" in race


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"idleReplicaCount": 1, "minReplicaCount": 1, "maxReplicaCount": 2}, "idleReplicaCount: 1 must be below"),
        ({"idleReplicaCount": 0, "minReplicaCount": None}, "idleReplicaCount: 0 must be below minReplicaCount 0"),
        ({"minReplicaCount": 5, "maxReplicaCount": 2}, "minReplicaCount: 5 is above maxReplicaCount 2"),
        ({"minReplicaCount": 101}, "minReplicaCount: 101 is above maxReplicaCount 100"),
    ],
)
def test_bounds_that_keda_rejects_are_errors(spec: dict[str, Any], error: str) -> None:
    report, _, monitor = imported(scaled({}, **spec))
    (text,) = report["objects"][0]["errors"]
    assert text.startswith(error)
    assert "KEDA rejects it too" in text
    assert monitor == {}


def test_idle_zero_beside_an_explicit_minimum_of_zero_is_a_warning_as_in_keda() -> None:
    report, _, monitor = imported(scaled({}, idleReplicaCount=0, minReplicaCount=0))
    assert monitor["consumerGroup"] == "orders"
    assert "idleReplicaCount 0 has no effect beside minReplicaCount 0; remove it." in report["objects"][0]["warnings"]


def test_an_address_without_a_port_is_an_error_with_an_example() -> None:
    report, _, _ = imported(scaled({"bootstrapServers": "kafka.shop.svc"}))
    (error,) = report["objects"][0]["errors"]
    assert error.endswith(
        "kafka.shop.svc has no port (KEDA rejects it too); append it, for example kafka.shop.svc:9092"
    )


def test_hosts_without_a_domain_are_a_task() -> None:
    servers = "kafka-0:9092,kafka-1:9092,10.0.0.1:9092,kafka.shop:9092,[::1]:9092"
    (task,) = imported(scaled({"bootstrapServers": servers}))[0]["objects"][0]["tasks"]
    assert "kafka-0:9092, kafka-1:9092. Use" in task
    assert task.endswith("for example kafka-0.shop.svc:9092.")


@pytest.mark.parametrize(
    ("namespaces", "options", "expected"),
    [
        (["kube-system"], {}, "kube-system"),
        (["kube-system", "shop"], {}, "keda"),
        ([], {}, "keda"),
        ([], {"keda_namespace": "openshift-keda"}, "openshift-keda"),
        (["shop"], {"keda_namespace": "openshift-keda"}, "openshift-keda"),
    ],
)
def test_secrets_of_a_cluster_authentication_are_in_the_namespace_of_keda(
    namespaces: list[str], options: dict[str, str], expected: str
) -> None:
    secrets = [secret(one, sasl="scram_sha512", tls="enable", username="u", password="canary") for one in namespaces]
    given = authentication("sasl", "tls", "username", "password", kind="ClusterTriggerAuthentication")
    asked = scaled({}, authentication={"name": "kafka", "kind": "ClusterTriggerAuthentication"})
    report, cluster, _ = imported(*secrets, given, asked, **options)
    assert {one["source"].partition("/")[0] for one in report["missingValues"]} == {f"Secret {expected}"}
    assert all(f"kubectl get secret -n {expected} kafka " in one["command"] for one in report["missingValues"])
    if expected in namespaces:
        assert (cluster["security"]["sasl"], cluster["security"]["tls"]) == ("scram_sha512", "enable")


@pytest.mark.parametrize("text", ["1", "t", "T", "TRUE", "true", "True"])
def test_flags_are_parsed_as_in_keda(text: str) -> None:
    _, _, monitor = imported(scaled({"allowIdleConsumers": text, "excludePersistentLag": text}))
    assert (monitor["policy"]["allowIdleConsumers"], monitor["policy"]["stuckAfterSeconds"]) == (True, 300)


def test_occurrences_count_the_triggers_that_have_the_key() -> None:
    keys = {"topic": "", "topicFromEnv": "TOPIC", "sasl": "none"}
    report, _, _ = imported(
        deployment(TOPIC="t"), authentication("sasl"), scaled(keys, authentication={"name": "kafka"})
    )
    counts = {one["key"]: one["occurrences"] for one in report["kedaKeys"]}
    assert (counts["topic"], counts["sasl"], counts["lagThreshold"]) == (1, 1, 0)
    without = scaled({})
    del without["spec"]["triggers"][0]["metadata"]["topic"]
    assert {one["key"]: one["occurrences"] for one in imported(without)[0]["kedaKeys"]}["topic"] == 0


def test_a_group_is_as_long_as_at_the_other_doors() -> None:
    assert imported(scaled({"consumerGroup": "g" * 2048}))[2]["consumerGroup"] == "g" * 2048
    (error,) = imported(scaled({"consumerGroup": "g" * 2049}))[0]["objects"][0]["errors"]
    assert error == "triggers[0].metadata.consumerGroup: must be at most 2,048 bytes"
