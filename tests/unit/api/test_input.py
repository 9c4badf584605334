"""What callers write becomes the canonical form, or a fault with the field's name."""

from __future__ import annotations

import pytest

from devstack.certificates import Authority
from lagscale.domain.policy.parsing import list_effective_values, parse_policy
from lagscale.errors import InvalidInput
from services.api.clusters.schemas import ClusterIn
from services.api.clusters.security import canonicalize
from services.api.monitors.drafts import format_policy
from services.api.monitors.schemas import MonitorIn

PEM = Authority.make().certificate
KEY = "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n"


def test_policy_values_of_any_kind_become_the_texts_of_metadata() -> None:
    texts, field_errors = format_policy(
        {"lagThreshold": 500, "targetLag": 0.5, "workSeconds": 1e3, "allowIdleConsumers": True, "holdSeconds": " 60 "}
        | {"samplingInterval": None, "windowSize": ""}
    )
    assert field_errors == []
    assert texts == {
        "lagThreshold": "500", "targetLag": "0.5", "workSeconds": "1000", "allowIdleConsumers": "true",
        "holdSeconds": "60",
    }  # fmt: skip
    assert parse_policy(texts).target_lag == 0.5


def test_an_unknown_policy_key_names_its_neighbor() -> None:
    _, field_errors = format_policy({"lagTreshold": 1, "zzzzzzzz": 2})
    assert [str(field_error) for field_error in field_errors] == [
        "lagTreshold: unknown policy key; did you mean lagThreshold?",
        "zzzzzzzz: unknown policy key",
    ]


def test_every_supported_key_is_shown_resolved() -> None:
    shown = list_effective_values(parse_policy({"partitionLimitation": "1,3,5-8"}))
    assert shown["partitionLimitation"] == "1,3,5-8"
    # What is shown can be given again, and means the same.
    texts, field_errors = format_policy({name: value for name, value in shown.items() if name != "metric"})
    assert field_errors == []
    assert list_effective_values(parse_policy(texts)) == shown


@pytest.mark.parametrize(
    ("security", "secrets", "wanted"),
    [
        ({}, None, {"protocol": "PLAINTEXT"}),
        ({"sasl": "none", "tls": "enable"}, None, {"protocol": "SSL"}),
        (
            {"sasl": "scram_sha512", "tls": "disable", "username": "admin"},
            {"password": "x"},
            {"protocol": "SASL_PLAINTEXT", "mechanism": "SCRAM-SHA-512", "username": "admin"},
        ),
        (
            {"sasl": "plaintext", "tls": "enable", "username": "a", "ca": PEM, "cert": PEM, "unsafeSsl": "false", "verifyHostname": False},
            {"password": "x", "key": KEY, "keyPassword": "y"},
            {"protocol": "SASL_SSL", "mechanism": "PLAIN", "username": "a", "ca": PEM, "certificate": PEM,
             "verify_hostname": False},
        ),
        (
            {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-256", "username": "a", "verifyHostname": True, "ca": None},
            None,
            {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-256", "username": "a", "verify_hostname": True},
        ),
    ],
)  # fmt: skip
def test_security_is_brought_to_one_form(
    security: dict[str, str | bool | None], secrets: dict[str, str | None] | None, wanted: dict[str, object]
) -> None:
    public = canonicalize(security, secrets).security
    assert public == wanted
    # The stored form is a form that may be given.
    assert canonicalize(dict(public), None)[0] == wanted


def test_secrets_are_renamed_and_none_stays_none() -> None:
    assert canonicalize({}, None)[1] is None
    assert canonicalize({}, {})[1] == {}
    assert canonicalize({}, {"key": KEY, "keyPassword": "p"})[1] == {"key": KEY, "key_password": "p"}


@pytest.mark.parametrize(
    ("security", "secrets", "field"),
    [
        ({"protocol": "SASL"}, None, "security.protocol"),
        ({"protocol": "SASL_SSL", "mechanism": "GSSAPI", "username": "a"}, None, "security.mechanism"),
        ({"protocol": "SASL_SSL", "mechanism": "PLAIN"}, None, "security.username"),
        ({"protocol": "SSL", "username": "a"}, None, "security.username"),
        ({"sasl": "kerberos"}, None, "security.sasl"),
        ({"tls": "enable", "unsafeSsl": "true"}, None, "security.unsafeSsl"),
        ({"sasl": "none", "protocol": "SSL"}, None, "security.protocol"),
        ({"password": "canary"}, None, "security.password"),
        ({"sasl.kerberos.kinit.cmd": "canary"}, None, "security.sasl.kerberos.kinit.cmd"),
        ({"ca": "canary"}, None, "security.ca"),
        ({"verifyHostname": "canary"}, None, "security.verifyHostname"),
        ({}, {"token": "canary"}, "secrets.token"),
        ({}, {"key": "canary"}, "secrets.key"),
        ({}, {"password": "canary\nx"}, "secrets.password"),
    ],
)
def test_faults_of_security_name_the_field_and_no_value(
    security: dict[str, str | bool | None], secrets: dict[str, str | None] | None, field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        canonicalize(security, secrets)
    assert field in {field_error.field for field_error in caught.value.field_errors}
    assert "canary" not in caught.value.message


def test_lists_may_be_written_with_commas() -> None:
    assert ClusterIn.model_validate({"bootstrapServers": "a:1, b:2"}).bootstrap_servers == ["a:1", "b:2"]


@pytest.mark.parametrize("server", ["kafka", ":9092", "kafka:x", "ka fka:1", "http://k:1/x", ""])
def test_what_is_no_server_is_refused(server: str) -> None:
    with pytest.raises(ValueError, match="bootstrapServers"):
        ClusterIn.model_validate({"bootstrapServers": [server]})


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "a b", "x" * 250, "a\x00"])
def test_what_is_no_topic_is_refused(topic: str) -> None:
    with pytest.raises(ValueError, match="topics"):
        MonitorIn.model_validate({"cluster": "main", "consumerGroup": "g", "topics": [topic]})


@pytest.mark.parametrize("server", ["kafka-0.kafka", "kafka:", "kafka:99999"])
def test_a_bootstrap_server_without_a_port_gets_an_example_of_one(server: str) -> None:
    with pytest.raises(ValueError, match=r"must have a port, as in kafka-0\.kafka:9092"):
        ClusterIn(bootstrap_servers=[server])
