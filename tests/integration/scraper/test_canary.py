"""A secret that a broker or the client refuses shows in no state, log or row, whatever the client says of it."""

from __future__ import annotations

import logging
from typing import Any

import psycopg
import pytest

from devstack.broker import Broker
from lagscale.store.registry.tables import metadata as tables
from tests.integration.scraper.test_clusters import guarded, sasl, unread

__all__ = ["guarded"]
pytestmark = pytest.mark.integration

CANARY = "C4nary-5c4a-for-the-broker"


def pem(kind: str) -> str:
    return f"-----BEGIN {kind}-----\n{CANARY}\n-----END {kind}-----\n"


def test_secrets_that_are_refused_show_nowhere(
    world: Any, guarded: Broker, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    made = guarded.certificates
    assert made is not None
    caplog.set_level(logging.DEBUG)
    tls: dict[str, object] = {"protocol": "SSL", "ca": made.authority, "certificate": made.client.certificate}
    refused: list[tuple[str, dict[str, object], dict[str, str]]] = [
        *((guarded.sasl_address, sasl(kind), {"password": CANARY}) for kind in ("PLAIN", "SCRAM-SHA-512")),
        # A listener that speaks no SASL, and one that speaks no TLS.
        (world.broker.address, sasl("PLAIN"), {"password": CANARY}),
        (world.broker.address, tls, {"key": made.client.key, "key_password": CANARY}),
        (guarded.tls_address, tls, {"key": pem("PRIVATE KEY")}),
        (guarded.tls_address, tls, {"key": pem("ENCRYPTED PRIVATE KEY"), "key_password": CANARY}),
        (guarded.tls_address, tls | {"certificate": pem("CERTIFICATE")}, {"key": made.client.key}),
    ]
    clusters = [unread(world, *one)[0] for one in refused]
    for _ in range(2):
        world.tick()
    states = [world.cluster_state(cluster) for cluster in clusters]
    assert states[:2] == ["authentication_failed"] * 2
    assert states[4:] == ["settings_refused"] * 3
    assert "ok" not in states[:3]
    # The certificate is no secret, and stands where it was registered.
    states_text = "".join(map(str, world.ask("select code, message from cluster_state")))
    with psycopg.connect(world.url) as connection:
        rows = "".join(
            str(connection.execute(f'select t::text from "{name}" as t').fetchall())  # type: ignore[call-overload]
            for name in tables.tables
            if name != "cluster"
        )
    out, err = capfd.readouterr()
    for place, text in (("states", states_text), ("rows", rows), ("logs", caplog.text), ("out", out), ("err", err)):
        found = text.find(CANARY)
        assert found < 0, f"{CANARY} shows in {place}: {text[max(0, found - 300) :][:700]}"
