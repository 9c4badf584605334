"""The local issuer does what an issuer does, or what is tested against it would prove nothing."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import jwt
import pytest

from devstack.issuer import Client, Issuer

pytestmark = pytest.mark.integration


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer("shop") as running:
        running.clients["scraper"] = Client("a secret of 3 words", {"tenant": "shop"})
        yield running


def _published(issuer: Issuer) -> jwt.PyJWKSet:
    discovered = httpx.get(f"{issuer.url}/.well-known/openid-configuration").json()
    assert discovered["issuer"] == issuer.url
    return jwt.PyJWKSet.from_dict(httpx.get(discovered["jwks_uri"]).json())


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_its_tokens_are_valid_under_its_published_keys_also_after_a_rotation(issuer: Issuer, algorithm: str) -> None:
    before = issuer.token()
    issuer.rotate(algorithm)
    keys = _published(issuer)
    for token in (before, issuer.token({"tenant": "shop"})):
        key = keys[jwt.get_unverified_header(token)["kid"]]
        assert jwt.decode(token, key, ["RS256", "ES256"], audience="shop", issuer=issuer.url)["sub"] == "somebody"


def test_a_forgotten_key_is_published_no_more(issuer: Issuer) -> None:
    old = issuer.keys[0].kid
    issuer.rotate(forget=True)
    assert old not in {key.key_id for key in _published(issuer).keys}


def test_client_credentials_by_either_way_give_a_token(issuer: Issuer) -> None:
    wanted = {"grant_type": "client_credentials", "scope": "kafka"}
    by_header = httpx.post(issuer.token_url, data=wanted, auth=("scraper", "a secret of 3 words"))
    in_body = {**wanted, "client_id": "scraper", "client_secret": "a secret of 3 words"}
    by_body = httpx.post(issuer.token_url, data=in_body)
    for answer in (by_header, by_body):
        claims = jwt.decode(answer.json()["access_token"], options={"verify_signature": False})
        assert (claims["sub"], claims["scope"], claims["tenant"]) == ("scraper", "kafka", "shop")
    assert httpx.post(issuer.token_url, data=wanted, auth=("scraper", "wrong")).status_code == 401


def test_it_keeps_its_address_over_a_stop(issuer: Issuer) -> None:
    issuer.stop()
    with pytest.raises(httpx.ConnectError):
        httpx.get(issuer.keys_url)
    issuer.start()
    assert httpx.get(issuer.keys_url).status_code == 200
