"""What is made of a client's lines and of what a broker knows; and the line that grants a right."""

from __future__ import annotations

import logging
import shlex

import pytest
from confluent_kafka import KafkaError

from lagscale.kafka.errors import AUTHENTICATION_FAILED, KINDS, TLS_FAILED, UNREACHABLE
from lagscale.kafka.probe.access import grant_line, principal_of
from lagscale.kafka.probe.connect import Listening, _kind, _of_sasl, _of_tls, kinds_of, version_of
from services.scraper.kafka.status import Code


def test_every_kind_of_error_is_a_named_state() -> None:
    assert {Code(kind) for kind in KINDS.values()} >= {Code.AUTHENTICATION_FAILED, Code.TIMEOUT, Code.NO_TOPIC}


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("ssl://k:1/bootstrap: Receive failed: error:0A000412:SSL routines::ssl/tls alert bad certificate", TLS_FAILED),
        ("ssl://k:1/bootstrap: SSL handshake failed: Disconnected", TLS_FAILED),
        ("k:1/bootstrap: Connect to ipv4#10.0.0.1:1 failed: Connection refused", UNREACHABLE),
    ],
)
def test_an_alert_of_tls_is_told_from_a_lost_connection(line: str, kind: str) -> None:
    assert _kind(KafkaError(KafkaError._TRANSPORT, line)) == kind
    assert _kind(KafkaError(KafkaError._AUTHENTICATION, "SASL authentication error")) == AUTHENTICATION_FAILED


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("SSL routines::certificate verify failed: broker certificate could not be verified", "`ca` that signed it"),
        ("ssl/tls alert certificate unknown: SSL alert number 46", "`certificate` and `key`"),
        ("SSL connection closed by peer: connecting to a PLAINTEXT broker listener?", "does not speak TLS"),
        ("SSL handshake failed: something new", "TLS fails"),
    ],
)
def test_a_failed_handshake_says_whose_certificate_to_look_at(line: str, says: str) -> None:
    assert says in _of_tls(line)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("SASL PLAIN mechanism handshake failed: broker's supported mechanisms: SCRAM-SHA-256,GSSAPI", "SCRAM-SHA-256,GSSAPI"),
        ("SASL PLAIN mechanism handshake failed: Request not valid: broker's supported mechanisms:  (after)", "does not take SASL"),
        ("SASL authentication error: Authentication failed: canary-password (after 3ms)", "user name and password"),
    ],
)  # fmt: skip
def test_refused_credentials_say_what_to_change_and_nothing_of_them(line: str, says: str) -> None:
    assert says in _of_sasl(line)
    assert "canary" not in _of_sasl(line)


def test_a_broker_s_version_is_told_by_what_it_knows() -> None:
    def heard(*lines: str) -> dict[int, tuple[int, int]]:
        listening = Listening()
        for line in lines:
            listening.handle(logging.makeLogRecord({"msg": "%s", "args": (line,)}))
        return listening.apis

    old = heard(
        "APIVERSION [x]:   ApiKey Fetch (1) Versions 0..11", "APIVERSION   ApiKey AlterPartition (45) Versions 0..0"
    )
    new = heard(
        "APIVERSION ApiKey Fetch (1) Versions 4..18",
        "APIVERSION ApiKey ConsumerGroupHeartbeat (68) Versions 0..1",
        "APIVERSION ApiKey DescribeTopicPartitions (75) Versions 0..0",
        "another line with Fetch (1)",
    )
    assert (version_of(old), kinds_of(old)) == ("2.4", ["classic"])
    assert (version_of(new), kinds_of(new)) == ("4.0", ["classic", "consumer"])
    assert version_of(new | {78: (1, 1), 76: (0, 1)}) == "4.1"
    assert (version_of({}), kinds_of({})) == (None, [])


def test_the_line_that_grants_is_one_command_whatever_the_names_are() -> None:
    name = "my group'; rm -rf /"
    argv = shlex.split(grant_line("User:CN=a b,O=c", "kafka:9092", "group", name))
    assert argv[0] == "kafka-acls"
    assert argv[-2:] == ["--group", name]
    assert "User:CN=a b,O=c" in argv
    assert shlex.split(grant_line("User:a", "k:1", "topic", ""))[-1] == "*"
    assert grant_line("User:a", "k:1", "cluster", "").endswith("--operation Describe --cluster")


@pytest.mark.parametrize(
    ("security", "principal"),
    [
        ({"protocol": "SASL_SSL", "username": "lagscale", "certificate": "x"}, "User:lagscale"),
        ({"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER"}, "User:<subject of the token>"),
        ({"protocol": "SSL", "certificate": "x"}, "User:CN=x"),
        ({"protocol": "SSL"}, "User:ANONYMOUS"),
        ({}, "User:ANONYMOUS"),
    ],
)
def test_the_principal_is_what_the_cluster_knows_this_client_by(security: dict[str, str], principal: str) -> None:
    assert principal_of(security, lambda certificate: f"CN={certificate}") == principal
