"""A secret that is given where it belongs shows nowhere: in answers, logs, audit, metrics, document, or the store's text.

The secrets are found in the API's document, so that a new one is met here.
"""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from devstack.issuer import Issuer
from devstack.server import free_port
from lagscale.store.encryption import generate_key
from lagscale.store.migrate import migrate
from tests.integration.api.test_canary import sent, stored
from tests.integration.api.test_process import ADMIN, eventually, free_address, running, status
from tests.support.write_only import PEM, placed, secret_routes

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


def cluster_requests() -> Iterator[tuple[str, str, dict[str, str], Any]]:
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


@contextmanager
def observed(url: str, **settings: str) -> Iterator[tuple[str, list[str]]]:
    """The address of a process at DEBUG, and its log once it has ended."""
    address = free_address()
    given = {
        "LAGSCALE_DATABASE_URL": url,
        "LAGSCALE_LOG_LEVEL": "debug",
        "LAGSCALE_SECRET_KEYS": generate_key(),
        "LAGSCALE_API_RATE_LIMIT": "0",
    }
    logged: list[str] = []
    with running(address, **given, **settings) as process:
        # A pipe that nobody reads would hold the process up.
        reader = threading.Thread(target=lambda pipe: logged.append(pipe.read()), args=(process.stderr,))
        reader.start()
        eventually(lambda: status(address, "/readyz") == 200)
        yield address, logged
        process.send_signal(signal.SIGTERM)
        process.wait(20)
        reader.join(20)


def absent(secret: str, **places: str) -> None:
    for place, text in places.items():
        found = text.find(secret)
        assert found < 0, f"{secret} shows in {place}: {text[max(0, found - 300) :][:700]}"


def test_a_secret_where_it_belongs_shows_nowhere(empty_url: str) -> None:
    migrate(empty_url)
    with observed(empty_url, LAGSCALE_API_PREFLIGHT_TIMEOUT_SECONDS="1", LAGSCALE_API_DOCS="true") as (address, logged):
        sent(address, "PUT", SHOP, OURS, {})
        wrong = [sent(address, *one) for one in requests()]
        read = [sent(address, *one) for one in cluster_requests()]
    (logs,) = logged
    codes = {text[:3] for text in wrong}
    # They were taken, refused for each reason, and looked at with the secret in hand.
    assert {"200", "201", "401", "409", "412", "415", "422"} <= codes, codes
    assert "500" not in codes
    assert {text[:3] for text in read} <= {"200", "201"}
    assert '"hasSecrets":true' in "".join(read)
    assert logs.count("request_served") > len(wrong)
    absent(CANARY, answers="".join(wrong + read), logs=logs, store=stored(empty_url))


def test_keys_and_tokens_that_are_valid_show_only_where_they_are_made(empty_url: str) -> None:
    migrate(empty_url)
    keys = f"{SHOP}/keys"
    with Issuer() as issuer:
        settings = {"LAGSCALE_API_OIDC_ISSUER": issuer.url, "LAGSCALE_API_OIDC_AUDIENCES": issuer.audience}
        with observed(empty_url, **settings) as (address, logged):
            sent(address, "PUT", SHOP, OURS, {})
            made = sent(address, "POST", keys, OURS, {"name": "ci", "role": "tenant-admin"})
            platform = sent(address, "POST", "/v1/keys", OURS, {"name": "team"})
            (first,), (second,) = (re.findall(r'"key":"(lsk_[^"]+)"', text) for text in (made, platform))
            turned = sent(address, "POST", f"{keys}/{first.split('_')[1]}/rotate", OURS, {})
            (third,) = re.findall(r'"key":"(lsk_[^"]+)"', turned)
            token = issuer.token({"tenant": "shop", "role": "tenant-admin"})
            secrets = [first, second, third, token]
            shown = []
            for secret in secrets:
                caller = {"Authorization": f"Bearer {secret}"}
                shown += [sent(address, "PUT", f"{SHOP}/clusters/main", caller, cluster())]
                shown += [sent(address, "GET", path, caller, None) for path in (keys, f"{SHOP}/audit/export", SHOP)]
            for path in ("/v1/keys", "/v1/audit/export", "/metrics", "/openapi.json"):
                shown.append(sent(address, "GET", path, OURS, None))
    (logs,) = logged
    assert {text[:3] for text in shown} <= {"200", "201"}
    for secret in secrets:
        # What names a key in URLs is no secret; what follows it is.
        hidden = secret.split("_", 2)[2] if secret.startswith("lsk_") else secret.split(".")[1]
        absent(hidden, answers="".join(shown), logs=logs, store=stored(empty_url))
