"""A cluster's canonical security -> the Kafka client's settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def client_config(
    bootstrap: Sequence[str], security: Mapping[str, Any], secrets: Mapping[str, str]
) -> dict[str, str | int | bool]:
    """The client's settings for a cluster's canonical security."""
    config: dict[str, str | int | bool] = {
        "bootstrap.servers": ",".join(bootstrap),
        "client.id": "lagscale",
        "security.protocol": str(security.get("protocol", "PLAINTEXT")),
        "socket.connection.setup.timeout.ms": 3000,
        "reconnect.backoff.max.ms": 1000,
        "socket.keepalive.enable": True,
        "enable.metrics.push": False,
    }
    named = (
        ("sasl.mechanism", security.get("mechanism")),
        ("sasl.username", security.get("username")),
        ("sasl.password", secrets.get("password")),
        ("ssl.ca.pem", security.get("ca")),
        ("ssl.certificate.pem", security.get("certificate")),
        ("ssl.key.pem", secrets.get("key")),
        ("ssl.key.password", secrets.get("key_password")),
    )
    config |= {name: value for name, value in named if value}
    if security.get("verify_hostname") is False:
        config["ssl.endpoint.identification.algorithm"] = "none"
    return config
