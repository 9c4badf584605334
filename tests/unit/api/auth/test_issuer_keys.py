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


class Told:
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
def told() -> Told:
    return Told()


@pytest.fixture
async def found(told: Told) -> AsyncIterator[IssuerKeys]:
    keys = IssuerKeys(ISSUER, transport=httpx.MockTransport(told.answer), clock=lambda: told.now)
    yield keys
    await keys.close()


async def test_a_key_is_found_by_its_id_and_asked_for_once(found: IssuerKeys, told: Told) -> None:
    assert await found.find(PUBLIC["kid"]) == PUBLIC
    assert await found.find(PUBLIC["kid"]) == PUBLIC
    assert told.asked == [f"{ISSUER}/.well-known/openid-configuration", KEYS]


async def test_without_an_id_the_only_key_is_meant(found: IssuerKeys, told: Told) -> None:
    assert await found.find(None) == PUBLIC
    told.keys = {"keys": [PUBLIC, PUBLIC | {"kid": "another"}]}
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
async def test_what_is_no_discovery_of_this_issuer_is_none(found: IssuerKeys, told: Told, discovery: Any) -> None:
    told.discovery = discovery
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
async def test_what_cannot_check_a_signature_is_no_key(found: IssuerKeys, told: Told, keys: Any) -> None:
    told.keys = keys
    with pytest.raises(IssuerUnavailable):
        await found.find(PUBLIC["kid"])


async def test_old_keys_are_read_again_beside_the_requests(found: IssuerKeys, told: Told) -> None:
    assert await found.find(PUBLIC["kid"]) == PUBLIC
    told.now = 301
    told.keys = {"keys": [PUBLIC | {"kid": "newer"}]}
    # This one does not wait, the next one has it.
    assert await found.find(PUBLIC["kid"]) == PUBLIC
    assert await found.find("newer") is not None
    assert await found.find(PUBLIC["kid"]) is None


async def test_after_a_failure_nobody_asks_for_a_while(found: IssuerKeys, told: Told) -> None:
    told.discovery = httpx.ConnectError("away")
    for _ in range(5):
        with pytest.raises(IssuerUnavailable):
            await found.find("any")
    assert len(told.asked) == 1
    told.discovery = {"issuer": ISSUER, "jwks_uri": KEYS}
    told.now = 2.5
    assert await found.find(PUBLIC["kid"]) == PUBLIC
