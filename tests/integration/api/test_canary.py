"""A secret that is sent to the wrong place, or is wrong, shows nowhere: logs, metrics, answers, audit, database."""

from __future__ import annotations

import base64
import http.client
import json
import signal
from typing import Any

import psycopg
import pytest

from devstack.issuer import Issuer
from lagscale.store.migrate import migrate
from lagscale.store.registry.tables import metadata
from tests.integration.api.test_process import ADMIN, eventually, free_address, running, status

pytestmark = pytest.mark.integration

CANARY = "C4nary-9b1f-in-the-coal-mine"
KEY = f"lsk_0123456789ab_{CANARY}"


def token(issuer: Issuer) -> str:
    """A token that is signed and refused, and whose claims hold the canary as well."""
    return issuer.token({"aud": CANARY, "sub": CANARY, "tenant": CANARY})


def places(secret: str) -> list[tuple[str, str, dict[str, str], Any]]:
    """Where people and programs put secrets by mistake: (method, path, headers, body)."""
    ours = {"Authorization": f"Bearer {ADMIN}"}
    basic = base64.b64encode(f"user:{secret}".encode()).decode()
    tenants = "/v1/tenants"
    return [
        ("GET", tenants, {"Authorization": f"Bearer {secret}"}, None),
        ("GET", tenants, {"Authorization": secret}, None),
        ("GET", tenants, {"Authorization": f"Token {secret}"}, None),
        ("GET", tenants, {"Authorization": f"Basic {basic}"}, None),
        ("GET", tenants, {"Authorization": f"Bearer Bearer {secret}"}, None),
        ("GET", tenants, {"X-Api-Key": secret, "Cookie": f"key={secret}", "User-Agent": secret}, None),
        ("GET", tenants, {**ours, "X-Api-Key": secret, "User-Agent": secret, "X-Forwarded-For": secret}, None),
        ("GET", f"{tenants}?access_token={secret}&key={secret}", {}, None),
        ("GET", f"{tenants}?cursor={secret}&limit={secret}", ours, None),
        ("GET", f"/v1/audit?since={secret}", ours, None),
        ("GET", f"/v1/audit?actor={secret}", ours, None),
        ("GET", f"{tenants}/{secret}", ours, None),
        ("GET", f"{tenants}/{secret}/monitors/{secret}", {}, None),
        ("GET", f"/{secret}", ours, None),
        ("DELETE", f"/v1/keys/{secret}", ours, None),
        ("POST", f"/v1/keys/{secret}/rotate", ours, {}),
        ("PATCH", f"{tenants}/{secret}", ours, None),
        ("PUT", f"{tenants}/shop", {**ours, "If-Match": secret}, {}),
        ("POST", tenants, ours, {"name": secret}),
        ("POST", tenants, ours, {"name": "shop", "maxMonitors": secret}),
        ("POST", tenants, ours, secret),
        ("POST", tenants, ours, f'{{"name": "{secret}'),
        ("POST", "/v1/keys", ours, {"name": ["x", secret], "expiresAt": secret}),
        ("POST", "/v1/keys", {}, {"name": secret}),
        (f"G{CANARY}", tenants, ours, None),
    ]


def sent(address: str, method: str, path: str, headers: dict[str, str], body: Any) -> str:
    """Status, headers and body of the answer as one text."""
    connection = http.client.HTTPConnection(address, timeout=30)
    data = None if body is None else body if isinstance(body, str) else json.dumps(body)
    try:
        connection.request(method, path, data, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        return f"{answer.status} {answer.getheaders()} {answer.read().decode()}"
    finally:
        connection.close()


def stored(url: str) -> str:
    with psycopg.connect(url) as connection:
        return "".join(
            str(connection.execute(f'select t::text from "{name}" as t').fetchall())  # type: ignore[call-overload]
            for name in metadata.tables
        )


def test_a_secret_in_the_wrong_place_shows_nowhere(empty_url: str) -> None:
    migrate(empty_url)
    address = free_address()
    with Issuer() as issuer:
        settings = {
            "LAGSCALE_DATABASE_URL": empty_url,
            "LAGSCALE_LOG_LEVEL": "debug",
            "LAGSCALE_API_OIDC_ISSUER": issuer.url,
            "LAGSCALE_API_OIDC_AUDIENCES": "lagscale",
            "LAGSCALE_API_TRUSTED_PROXIES": "127.0.0.0/8",
            "LAGSCALE_API_AUTH_FAILURES_PER_MINUTE": "1000",
        }
        with running(address, **settings) as process:
            eventually(lambda: status(address, "/readyz") == 200)
            secrets = [KEY, token(issuer), CANARY]
            shown = [sent(address, *place) for secret in secrets for place in places(secret)]
            shown += [sent(address, "GET", path, {}, None) for path in ("/metrics", "/openapi.json", "/healthz")]
            events = sent(address, "GET", "/v1/audit/export", {"Authorization": f"Bearer {ADMIN}"}, None)
            counted = shown[-3]
            process.send_signal(signal.SIGTERM)
            process.wait(20)
            assert process.stderr is not None
            logs = process.stderr.read()
    # All these places were really met.
    for reason in ("missing", "malformed", "unknown_key", "token_audience"):
        assert f'lagscale_api_failed_attempts_total{{reason="{reason}"}}' in counted
        assert f'"reason": "{reason}"' in logs
    assert logs.count("request_served") > 60
    hidden = [CANARY, base64.b64encode(f"user:{CANARY}".encode()).decode(), secrets[1].split(".")[1]]
    for place, text in (("answers", "".join(shown)), ("logs", logs), ("audit", events), ("store", stored(empty_url))):
        for secret in (*hidden, ADMIN):
            assert secret not in text, f"{secret} shows in {place}: {text[max(0, text.find(secret) - 300) :][:700]}"
