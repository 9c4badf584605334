"""The Kafka client's configuration from a cluster's canonical security, secrets and properties, and its error codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from lagscale.domain.state_codes import StateCode
from lagscale.kafka.properties import check_properties
from lagscale.kafka.security import PRINCIPAL, find_mechanism

#: Error codes of the client -> stored state codes.
ERROR_STATES: Mapping[int, StateCode] = {
    KafkaError._AUTHENTICATION: StateCode.AUTHENTICATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED: StateCode.AUTHENTICATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM: StateCode.AUTHENTICATION_FAILED,
    KafkaError.ILLEGAL_SASL_STATE: StateCode.AUTHENTICATION_FAILED,
    KafkaError._SSL: StateCode.TLS_FAILED,
    KafkaError._TRANSPORT: StateCode.UNREACHABLE,
    KafkaError._RESOLVE: StateCode.UNREACHABLE,
    KafkaError._ALL_BROKERS_DOWN: StateCode.UNREACHABLE,
    KafkaError._TIMED_OUT: StateCode.TIMEOUT,
    KafkaError._TIMED_OUT_QUEUE: StateCode.TIMEOUT,
    KafkaError.REQUEST_TIMED_OUT: StateCode.TIMEOUT,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: StateCode.AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED: StateCode.AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: StateCode.AUTHORIZATION_FAILED,
    KafkaError.UNKNOWN_TOPIC_OR_PART: StateCode.NO_TOPIC,
}
#: Connection errors that explain a request that only timed out, the most specific first.
ROOT_CAUSES = (StateCode.AUTHENTICATION_FAILED, StateCode.TLS_FAILED, StateCode.UNREACHABLE)
_NO_PROPERTIES: Mapping[str, Any] = {}


class FeatureMissing(ValueError):
    """The build of the Kafka client lacks what the cluster's security needs."""


@cache
def has_feature(feature: str) -> bool:
    """Whether the client was built with a feature, for example `sasl_gssapi`: the wheel has no Kerberos.

    librdkafka rejects a configuration with a feature that it lacks.
    """
    try:
        AdminClient({"builtin.features": feature})
    except KafkaException:
        return False
    return True


def build_client_config(
    bootstrap: Sequence[str],
    security: Mapping[str, Any],
    secrets: Mapping[str, str],
    properties: Mapping[str, Any] = _NO_PROPERTIES,
    oauth_cb: Callable[..., Any] | None = None,
) -> dict[str, Any]:
    """The client's configuration for a cluster.

    Args:
        bootstrap: `host:port` each.
        security: the canonical form.
        secrets: all of them, resolved; they override `security`.
        properties: override defaults, never security.
        oauth_cb: returns the cluster's token; the client calls it at once and waits for it.

    Raises:
        FeatureMissing: this build of the client lacks the mechanism.
        ValueError: a property that nobody may set, or a Kerberos name that is unsafe in a command line.
    """
    given, field_errors = check_properties(properties, platform=True)
    if field_errors:
        # The API accepts none of them, so it was bypassed.
        raise ValueError("a property is not allowed")
    return {
        "client.id": "lagscale",
        "socket.connection.setup.timeout.ms": 3000,
        "reconnect.backoff.max.ms": 1000,
        "socket.keepalive.enable": True,
        "enable.metrics.push": False,
        **_order_backoff(given),
        "bootstrap.servers": ",".join(bootstrap),
        "security.protocol": str(security.get("protocol", "PLAINTEXT")),
        **_build_sasl(security, {**security, **secrets}, oauth_cb),
        **_build_tls(security, {**security, **secrets}),
    }


def _order_backoff(given: Mapping[str, Any]) -> dict[str, Any]:
    # The client rejects an initial backoff above the maximum, whose default is ours.
    first = given.get("reconnect.backoff.ms", 0)
    longest = {"reconnect.backoff.max.ms": max(1000, first)} if first else {}
    return {**longest, **given}


def _build_sasl(
    security: Mapping[str, Any], given: Mapping[str, Any], oauth_cb: Callable[..., Any] | None
) -> dict[str, Any]:
    kind = find_mechanism(security)
    if kind is None:
        return {}
    config: dict[str, Any] = {"sasl.mechanism": security.get("mechanism")}
    if kind == "GSSAPI":
        return config | _build_kerberos(given)
    if security.get("mechanism") == "OAUTHBEARER":
        return config if oauth_cb is None else {**config, "oauth_cb": oauth_cb}
    named = (("sasl.username", given.get("username")), ("sasl.password", given.get("password")))
    return config | {name: value for name, value in named if value}


def _build_kerberos(given: Mapping[str, Any]) -> dict[str, Any]:
    if not has_feature("sasl_gssapi"):
        raise FeatureMissing("sasl_gssapi")
    names = [str(given[name]) for name in ("username", "realm") if given.get(name)]
    service = str(given.get("kerberos_service_name", "kafka"))
    # The client puts them into the command line of kinit, and a referenced secret may contain anything.
    if not names or not all(PRINCIPAL.fullmatch(name) for name in (*names, service)):
        raise ValueError("a Kerberos name contains characters that no principal may have")
    return {"sasl.kerberos.principal": "@".join(names), "sasl.kerberos.service.name": service}


def _build_tls(security: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    named = (
        ("ssl.ca.pem", given.get("ca")),
        ("ssl.certificate.pem", given.get("certificate")),
        ("ssl.key.pem", given.get("key")),
        ("ssl.key.password", given.get("key_password")),
    )
    config: dict[str, Any] = {name: value for name, value in named if value}
    if security.get("verify_hostname") is False:
        config["ssl.endpoint.identification.algorithm"] = "none"
    return config
