"""A secret that is given where it belongs shows nowhere: in answers, logs, audit, metrics, document, or the store's text.

The secrets are found in the API's document, so that a new one is met here.
"""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from devstack.server import free_port
from lagscale.store.migrate import migrate
from lagscale.store.secrets import generate_key
from tests.integration.api.test_canary import sent, stored
from tests.integration.api.test_process import ADMIN, eventually, free_address, running, status
from tests.write_only import PEM, placed, secret_routes

pytestmark = pytest.mark.integration

CANARY = "C4nary-5e11-where-it-belongs"
OURS = {"Authorization": f"Bearer {ADMIN}"}
SHOP = "/v1/tenants/shop"
#: Each is taken or refused in a way of its own.
ODD: tuple[Any, ...] = (
    CANARY,
    [CANARY],
    {"x": CANARY},
    f"{CANARY}\n",
    CANARY * 300,
    PEM.format(CANARY),
    f"file:{CANARY}",
)


def cluster(**given: Any) -> dict[str, Any]:
    return {
        "bootstrapServers": [f"127.0.0.1:{free_port()}"],
        "security": {"protocol": "SASL_SSL", "mechanism": "PLAIN", "username": "u"},
    } | given


def merged(body: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    return body | {
        name: merged(body[name], value) if isinstance(value, dict) and isinstance(body.get(name), dict) else value
        for name, value in given.items()
    }


def requests() -> Iterator[tuple[str, str, dict[str, str], Any]]:
    """(method, path, headers, body): every secret, right and wrong, alone and beside a fault elsewhere."""
    for method, path, way in secret_routes():
        where = path.replace("{tenant}", "shop").replace("{cluster}", "main")
        named = {"name": "main"} if method == "POST" else {}
        for number, value in enumerate(ODD):
            body = merged(cluster(**named), placed(way, value))
            yield method, where, OURS, body
            yield method, f"{where}?dryRun=true&preflight=false", OURS, body
            yield method, where, OURS, body | {"bootstrapServers": [CANARY if number else "x"], "unknown": 1}
            yield method, where, {**OURS, "If-Match": '"999"'}, body
            yield method, where, {}, body
            yield method, where, OURS, json.dumps(body)[:-1]
            yield method, where, {**OURS, "Content-Type": "text/plain"}, json.dumps(body)
            # In the place for what is shown: that must be refused, not stored.
            yield method, where, OURS, cluster(**named) | {"security": {"password": value, "key": value}}


def looks() -> Iterator[tuple[str, str, dict[str, str], Any]]:
    """What reads a cluster with secrets, or uses them."""
    right = cluster(secrets={"password": CANARY, "key": PEM.format(CANARY), "keyPassword": CANARY})
    monitor = {"cluster": "main", "consumerGroup": "g", "topics": ["t"]}
    yield "PUT", f"{SHOP}/clusters/main", OURS, right
    yield "GET", f"{SHOP}/clusters/main", OURS, None
    yield "GET", f"{SHOP}/clusters", OURS, None
    yield "POST", f"{SHOP}/clusters/main/preflight", OURS, {}
    yield "POST", f"{SHOP}/monitors/validate", OURS, monitor
    yield "PUT", f"{SHOP}/monitors/orders", OURS, monitor
    yield "POST", f"{SHOP}/monitors/bulk", OURS, {"items": [{"put": monitor | {"name": "more"}}]}
    for part in ("verdict", "explain", "health", "state", "compare"):
        yield "GET", f"{SHOP}/monitors/orders/{part}", OURS, None
    for path in ("/audit", "/audit/export", "/health", "/keys"):
        yield "GET", SHOP + path, OURS, None
    for path in ("/v1/audit", "/v1/audit/export", "/metrics", "/openapi.json", "/docs", "/healthz"):
        yield "GET", path, OURS, None


def test_every_secret_is_met() -> None:
    met = {way for _, _, way in secret_routes()}
    assert {("secrets", name) for name in ("password", "key", "keyPassword")} <= met
    assert {"POST", "PUT"} <= {method for method, _, _ in secret_routes()}


def test_a_secret_where_it_belongs_shows_nowhere(empty_url: str) -> None:
    migrate(empty_url)
    address = free_address()
    settings = {
        "LAGSCALE_DATABASE_URL": empty_url,
        "LAGSCALE_LOG_LEVEL": "debug",
        "LAGSCALE_SECRET_KEYS": generate_key(),
        "LAGSCALE_PREFLIGHT_SECONDS": "1",
        "LAGSCALE_KEY_RATE": "0",
    }
    with running(address, **settings) as process:
        assert process.stderr is not None
        logged: list[str] = []
        # A pipe that nobody reads would hold the process up.
        reader = threading.Thread(target=lambda pipe: logged.append(pipe.read()), args=(process.stderr,))
        reader.start()
        eventually(lambda: status(address, "/readyz") == 200)
        sent(address, "PUT", SHOP, OURS, {})
        wrong = [sent(address, *one) for one in requests()]
        read = [sent(address, *one) for one in looks()]
        process.send_signal(signal.SIGTERM)
        process.wait(20)
        reader.join(20)
        (logs,) = logged
    codes = {text[:3] for text in wrong}
    # They were taken, refused for each reason, and looked at with the secret in hand.
    assert {"200", "201", "401", "409", "412", "415", "422"} <= codes, codes
    assert "500" not in codes | {text[:3] for text in read}
    assert {text[:3] for text in read} <= {"200", "201"}
    assert '"hasSecrets":true' in "".join(read)
    assert logs.count("request_served") > len(wrong)
    for place, text in (("answers", "".join(wrong + read)), ("logs", logs), ("store", stored(empty_url))):
        found = text.find(CANARY)
        assert found < 0, f"{CANARY} shows in {place}: {text[max(0, found - 300) :][:700]}"
