"""Errors of the Kafka client's connections -> a state, and a text with the remediation. Texts hold no secret and no address."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError

from lagscale.domain.state_codes import StateCode
from lagscale.kafka.addresses import AddressRefused, AddressRules
from lagscale.kafka.client import ERROR_STATES

TLS_REQUIRED = "The listener uses TLS: set tls to enable (security protocol SSL, or SASL_SSL with SASL)."
SASL_REQUIRED = (
    "The listener closed the connection without an answer: if it requires SASL, set sasl and its credentials."
)
_NO_TLS = "The listener does not use TLS; check the port, or set tls to disable (a security protocol without SSL)."
_MECHANISMS = re.compile(r"supported mechanisms: ([A-Z0-9,_-]{1,100})")
_ALERTS = ("bad certificate", "certificate required", "certificate unknown", "unknown ca", "certificate expired",
           "handshake failure", "unsupported certificate", "certificate revoked")  # fmt: skip


def classify_error(error: KafkaError) -> StateCode | None:
    """The state that an error means; None for errors that are no state."""
    # Alerts of TLS arrive as a lost connection.
    text = error.str()
    if "SSL handshake failed" in text or ("SSL" in text and "alert" in text):
        return StateCode.TLS_FAILED
    return ERROR_STATES.get(error.code())


def explain_tls_error(line: str, config: Mapping[str, Any]) -> str:
    """Why a TLS handshake failed; `config` is the client's."""
    if "PLAINTEXT broker listener" in line or "wrong version number" in line:
        return _NO_TLS
    if any(f"alert {name}" in line for name in _ALERTS):
        return (
            "The broker requires a client certificate or rejected it; provide `certificate` and `key` signed by a CA that "
            "it trusts."
        )
    if "verify failed" not in line:
        return "TLS handshake failed; check the CA, the client certificate and the port."
    ca = (
        "`ca` did not sign it: provide the CA of the brokers' certificates, not one that signed only those of clients"
        if config.get("ssl.ca.pem")
        else "provide the `ca` that signed it"
    )
    return (
        f"The broker's certificate cannot be verified; {ca}, and set verifyHostname to false only if it is for another host "
        "name."
    )


def explain_sasl_error(line: str) -> str:
    """Why SASL failed."""
    offered = _MECHANISMS.search(line)
    if offered is not None:
        return f"Unsupported SASL mechanism; the listener offers {offered[1].strip(',')}."
    if "handshake failed" in line:
        return "The listener does not use SASL; check the port, or set a security protocol without SASL."
    return "Authentication failed; check mechanism, user name and password."


def requires_tls(config: Mapping[str, Any], host: str, port: int, rules: AddressRules, seconds: float) -> bool:
    """Whether a client without TLS connects to a listener that uses it: the client reports such a connection only as lost."""
    if str(config.get("security.protocol", "PLAINTEXT")).endswith("SSL"):
        return False
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Nothing is sent over this connection, so nothing has to be verified.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with rules.connect(host, port, seconds) as opened, context.wrap_socket(opened):
            return True
    except ssl.SSLError as failed:
        # An alert, for example for a missing client certificate, is TLS too.
        return "ALERT" in str(failed.reason)
    except (OSError, AddressRefused):
        return False
