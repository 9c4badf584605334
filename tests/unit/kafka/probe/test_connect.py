"""What a client's errors and a broker's API versions are read as."""

from __future__ import annotations

import logging

import pytest
from confluent_kafka import KafkaError

from lagscale.domain.state_codes import StateCode
from lagscale.kafka.client import ERROR_STATES
from lagscale.kafka.probe.connect import (
    ApiVersionLogHandler,
    _classify_error,
    _explain_sasl_error,
    _explain_tls_error,
    infer_kafka_version,
    list_group_kinds,
)


def test_every_kind_of_error_is_a_named_state() -> None:
    assert set(ERROR_STATES.values()) >= {
        StateCode.AUTHENTICATION_FAILED,
        StateCode.TIMEOUT,
        StateCode.NO_TOPIC,
    }


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (
            "ssl://k:1/bootstrap: Receive failed: error:0A000412:SSL routines::ssl/tls alert bad certificate",
            StateCode.TLS_FAILED,
        ),
        ("ssl://k:1/bootstrap: SSL handshake failed: Disconnected", StateCode.TLS_FAILED),
        ("k:1/bootstrap: Connect to ipv4#10.0.0.1:1 failed: Connection refused", StateCode.UNREACHABLE),
    ],
)
def test_an_alert_of_tls_is_told_from_a_lost_connection(line: str, kind: str) -> None:
    assert _classify_error(KafkaError(KafkaError._TRANSPORT, line)) == kind
    assert (
        _classify_error(KafkaError(KafkaError._AUTHENTICATION, "SASL authentication error"))
        == StateCode.AUTHENTICATION_FAILED
    )


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("SSL routines::certificate verify failed: broker certificate could not be verified", "`ca` that signed it"),
        ("ssl/tls alert certificate unknown: SSL alert number 46", "`certificate` and `key`"),
        ("SSL connection closed by peer: connecting to a PLAINTEXT broker listener?", "does not use TLS"),
        ("SSL handshake failed: something new", "TLS handshake failed"),
    ],
)
def test_a_failed_handshake_says_whose_certificate_to_look_at(line: str, says: str) -> None:
    assert says in _explain_tls_error(line)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("SASL PLAIN mechanism handshake failed: broker's supported mechanisms: SCRAM-SHA-256,GSSAPI", "SCRAM-SHA-256,GSSAPI"),
        ("SASL PLAIN mechanism handshake failed: Request not valid: broker's supported mechanisms:  (after)", "does not use SASL"),
        ("SASL authentication error: Authentication failed: canary-password (after 3ms)", "user name and password"),
    ],
)  # fmt: skip
def test_refused_credentials_say_what_to_change_and_nothing_of_them(line: str, says: str) -> None:
    assert says in _explain_sasl_error(line)
    assert "canary" not in _explain_sasl_error(line)


def test_a_broker_s_version_is_told_by_what_it_knows() -> None:
    def read_api_versions(*lines: str) -> dict[int, tuple[int, int]]:
        listening = ApiVersionLogHandler()
        for line in lines:
            listening.handle(logging.makeLogRecord({"msg": "%s", "args": (line,)}))
        return listening.apis

    old = read_api_versions(
        "APIVERSION [x]:   ApiKey Fetch (1) Versions 0..11", "APIVERSION   ApiKey AlterPartition (45) Versions 0..0"
    )
    new = read_api_versions(
        "APIVERSION ApiKey Fetch (1) Versions 4..18",
        "APIVERSION ApiKey ConsumerGroupHeartbeat (68) Versions 0..1",
        "APIVERSION ApiKey DescribeTopicPartitions (75) Versions 0..0",
        "another line with Fetch (1)",
    )
    assert (infer_kafka_version(old), list_group_kinds(old)) == ("2.4", ["classic"])
    assert (infer_kafka_version(new), list_group_kinds(new)) == ("4.0", ["classic", "consumer"])
    assert infer_kafka_version(new | {78: (1, 1), 76: (0, 1)}) == "4.1"
    assert (infer_kafka_version({}), list_group_kinds({})) == (None, [])
