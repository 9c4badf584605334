"""What errors of the client's connections are read as, and whether a listener uses TLS."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from lagscale.domain.state_codes import StateCode
from lagscale.kafka.client import ERROR_STATES
from lagscale.kafka.errors import classify_error, explain_sasl_error, explain_tls_error


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
    assert classify_error(KafkaError(KafkaError._TRANSPORT, line)) == kind
    assert (
        classify_error(KafkaError(KafkaError._AUTHENTICATION, "SASL authentication error"))
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
    assert says in explain_tls_error(line, {})


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("SASL PLAIN mechanism handshake failed: broker's supported mechanisms: SCRAM-SHA-256,GSSAPI", "SCRAM-SHA-256,GSSAPI"),
        ("SASL PLAIN mechanism handshake failed: Request not valid: broker's supported mechanisms:  (after)", "does not use SASL"),
        ("SASL authentication error: Authentication failed: canary-password (after 3ms)", "user name and password"),
    ],
)  # fmt: skip
def test_refused_credentials_say_what_to_change_and_nothing_of_them(line: str, says: str) -> None:
    assert says in explain_sasl_error(line)
    assert "canary" not in explain_sasl_error(line)


def test_a_ca_that_did_not_sign_the_broker_is_told_from_a_missing_one() -> None:
    line = "SSL routines::certificate verify failed: broker certificate could not be verified"
    text = explain_tls_error(line, {"ssl.ca.pem": "CA"})
    assert "`ca` did not sign it" in text
    assert "not one that signed only those of clients" in text
    assert "verifyHostname" in text
