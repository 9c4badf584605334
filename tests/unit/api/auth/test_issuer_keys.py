"""Which keys of an issuer are taken, and which answers are none; told by hand, without any socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from devstack.issuer import SigningKey
from lagscale.errors import IssuerUnavailable
from services.api.auth.issuer_keys import IssuerKeys

ISSUER = "https://login.example/realms/platform"
KEYS = "https://login.example/keys"
PUBLIC = SigningKey.make("ES256").public


class FakeIssuer:
    """An issuer that says what the test wants, at a time that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0
        self.discovery: Any = {"issuer": ISSUER, "jwks_uri": KEYS}
        self.keys: Any = {"keys": [PUBLIC]}
        self.asked: list[str] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(str(request.url))
        said = self.keys if str(request.url) == KEYS else self.discovery
        if isinstance(said, Exception):
            raise said
        return httpx.Response(200, text=said) if isinstance(said, str) else httpx.Response(200, json=said)


@pytest.fixture
def fake_issuer() -> FakeIssuer:
    return FakeIssuer()


@pytest.fixture
async def found(fake_issuer: FakeIssuer) -> AsyncIterator[IssuerKeys]:
    keys = IssuerKeys(ISSUER, transport=httpx.MockTransport(fake_issuer.answer), clock=lambda: fake_issuer.now)
    yield keys
    await keys.close()


async def test_a_key_is_found_by_its_id_and_asked_for_once(found: IssuerKeys, fake_issuer: FakeIssuer) -> None:
    assert await found.find(PUBLIC["kid"]) == PUBLIC
    assert await found.find(PUBLIC["kid"]) == PUBLIC
    assert fake_issuer.asked == [f"{ISSUER}/.well-known/openid-configuration", KEYS]


async def test_without_an_id_the_only_key_is_meant(found: IssuerKeys, fake_issuer: FakeIssuer) -> None:
    assert await found.find(None) == PUBLIC
    fake_issuer.keys = {"keys": [PUBLIC, PUBLIC | {"kid": "another"}]}
    assert await found.find("another") is not None
    assert await found.find(None) is None


@pytest.mark.parametrize(
    "discovery",
    [
        {"issuer": "https://login.example", "jwks_uri": KEYS},
        {"issuer": ISSUER},
        {"issuer": ISSUER, "jwks_uri": 7},
        {"issuer": ISSUER, "jwks_uri": "http://login.example/keys"},
        {"issuer": ISSUER, "jwks_uri": "https://"},
        [],
        "<html>",
        httpx.ConnectError("away"),
    ],
)
async def test_what_is_no_discovery_of_this_issuer_is_none(
    found: IssuerKeys, fake_issuer: FakeIssuer, discovery: Any
) -> None:
    fake_issuer.discovery = discovery
    with pytest.raises(IssuerUnavailable):
        await found.find(PUBLIC["kid"])


@pytest.mark.parametrize(
    "keys",
    [
        {"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": PUBLIC["kid"]}]},
        {"keys": [PUBLIC | {"use": "enc"}]},
        {"keys": []},
        {"keys": "none"},
        {"keys": [None, "x", 7]},
        {},
    ],
)
async def test_what_cannot_check_a_signature_is_no_key(found: IssuerKeys, fake_issuer: FakeIssuer, keys: Any) -> None:
    fake_issuer.keys = keys
    with pytest.raises(IssuerUnavailable):
        await found.find(PUBLIC["kid"])


async def test_old_keys_are_read_again_beside_the_requests(found: IssuerKeys, fake_issuer: FakeIssuer) -> None:
    assert await found.find(PUBLIC["kid"]) == PUBLIC
    fake_issuer.now = 301
    fake_issuer.keys = {"keys": [PUBLIC | {"kid": "newer"}]}
    # This one does not wait, the next one has it.
    assert await found.find(PUBLIC["kid"]) == PUBLIC
    assert await found.find("newer") is not None
    assert await found.find(PUBLIC["kid"]) is None


async def test_after_a_failure_nobody_asks_for_a_while(found: IssuerKeys, fake_issuer: FakeIssuer) -> None:
    fake_issuer.discovery = httpx.ConnectError("away")
    for _ in range(5):
        with pytest.raises(IssuerUnavailable):
            await found.find("any")
    assert len(fake_issuer.asked) == 1
    fake_issuer.discovery = {"issuer": ISSUER, "jwks_uri": KEYS}
    fake_issuer.now = 2.5
    assert await found.find(PUBLIC["kid"]) == PUBLIC
