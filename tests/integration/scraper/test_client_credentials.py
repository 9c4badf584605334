"""The token endpoint is asked as RFC 6749 says, and whatever it answers is judged before it is used."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from devstack.certificates import Certificates
from devstack.issuer import Client, Issuer
from lagscale.errors import TokenUnavailable
from lagscale.kafka.oauth import ClientCredentials

pytestmark = pytest.mark.integration

SECRET = "canary +&=/:%\u00e9"


def anywhere(host: str, port: int) -> list[str]:
    return [host]


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer("kafka", lifetime_seconds=300) as made:
        made.clients["lag:scale +"] = Client(SECRET)
        yield made


def asked(issuer: Issuer) -> ClientCredentials:
    return ClientCredentials(issuer.token_url, "lag:scale +", SECRET, ("a", "b"), {"x": "y"})


def test_a_token_with_its_life_and_the_extensions(issuer: Issuer) -> None:
    began = time.time()
    token = asked(issuer).fetch(anywhere)
    assert token.value.count(".") == 2
    assert began + 300 <= token.expires_at <= time.time() + 300
    assert (token.principal, token.extensions) == ("lag:scale +", {"x": "y"})
    assert SECRET not in repr(asked(issuer))


def answers(issuer: Issuer, monkeypatch: pytest.MonkeyPatch, status: int, body: Any) -> None:
    monkeypatch.setattr(issuer, "answer", lambda *_: (status, body))


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (401, {"error": "invalid_client"}, "HTTP 401: invalid_client"),
        (400, {"error": "canary-of-the-network"}, "HTTP 400"),
        (302, {}, "HTTP 302"),
        (500, [], "HTTP 500"),
        (200, [], "no access token"),
        (200, {"access_token": ""}, "no access token"),
        (200, {"access_token": "a b\r\nX: y"}, "no access token"),
        (200, {"access_token": 5}, "no access token"),
        (200, {"access_token": "a", "token_type": "mac"}, "another type than Bearer"),
        (200, {"access_token": "a", "expires_in": 0}, "issues expired tokens"),
        (200, {"access_token": "a", "expires_in": -5}, "issues expired tokens"),
        (200, {"access_token": "a", "expires_in": "inf"}, "issues expired tokens"),
        (200, {"access_token": "a" * 300_000}, "too large or too slow"),
    ],
)
def test_an_answer_that_is_no_token_is_named_and_not_disclosed(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch, status: int, body: Any, reason: str
) -> None:
    answers(issuer, monkeypatch, status, body)
    with pytest.raises(TokenUnavailable) as caught:
        asked(issuer).fetch(anywhere)
    assert reason in caught.value.message
    for text in ("canary", issuer.url, SECRET):
        assert text not in caught.value.message


@pytest.mark.parametrize(("text", "life"), [("60", 60), (60.5, 60.5), (None, 300), (True, 300), ("soon", 300)])
def test_a_lifetime_in_any_form(issuer: Issuer, monkeypatch: pytest.MonkeyPatch, text: object, life: float) -> None:
    answers(issuer, monkeypatch, 200, {"access_token": "a.b.c", "expires_in": text})
    began = time.time()
    assert began + life <= asked(issuer).fetch(anywhere).expires_at <= time.time() + life


def test_nothing_is_sent_to_an_address_that_is_refused(issuer: Issuer) -> None:
    def refused(host: str, port: int) -> list[str]:
        raise TokenUnavailable("the token URL does not lead there")

    with pytest.raises(TokenUnavailable, match="does not lead there"):
        asked(issuer).fetch(refused)
    assert issuer.request_counts == {}


def test_the_address_that_was_checked_is_the_one_that_is_asked(issuer: Issuer) -> None:
    # The name leads nowhere by itself: only what was resolved counts.
    named = replace(asked(issuer), url=issuer.token_url.replace("127.0.0.1", "no-such-host.invalid"))
    assert named.fetch(lambda host, port: ["127.0.0.1"]).value
    issuer.stop()
    with pytest.raises(TokenUnavailable, match="unreachable"):
        named.fetch(lambda host, port: ["127.0.0.1"])
    with pytest.raises(TokenUnavailable, match="unreachable"):
        named.fetch(lambda host, port: [])


def test_no_proxy_of_the_environment_is_asked(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert asked(issuer).fetch(anywhere).value


def test_the_endpoints_certificate_is_checked(tmp_path: Path) -> None:
    made = Certificates.make(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    with Issuer("kafka", tls=context) as issuer:
        issuer.clients["lag:scale +"] = Client(SECRET)
        assert replace(asked(issuer), ca=made.authority).fetch(anywhere).value
        with pytest.raises(TokenUnavailable, match="check tokenCa"):
            asked(issuer).fetch(anywhere)
        with pytest.raises(TokenUnavailable, match="cannot be read; check tokenCa"):
            replace(asked(issuer), ca="-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n").fetch(anywhere)
