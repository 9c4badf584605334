"""Bearer tokens against a local issuer over real HTTP: what counts, what does not, and whom it stands for."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import jwt
import psycopg
import pytest
from cryptography.hazmat.primitives import serialization
from prometheus_client import REGISTRY

from devstack.certificates import Certificates
from devstack.issuer import Issuer, SigningKey
from services.api.auth.issuer_keys import IssuerKeys
from services.api.auth.tokens import TokenRules, TokenVerifier
from tests.integration.api.conftest import Shop, fresh
from tests.support.api_server import ADMIN, PEER, bearer, serving

pytestmark = pytest.mark.integration

Forged = Callable[[Issuer, str], str]


class Hours:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer() as running:
        yield running


@pytest.fixture
def clock() -> Hours:
    return Hours()


def read_rules(issuer: Issuer) -> TokenRules:
    return TokenRules(issuer.url, ("other", "lagscale"))


@pytest.fixture
async def replica(issuer: Issuer, clock: Hours, shared_url: str) -> AsyncIterator[httpx.AsyncClient]:
    tokens = TokenVerifier(read_rules(issuer), IssuerKeys(issuer.url, clock=clock))
    async with serving(shared_url, tokens=tokens) as client:
        yield client


def failures(reason: str) -> float:
    return REGISTRY.get_sample_value("lagscale_api_failed_attempts_total", {"reason": reason}) or 0.0


def admin_of(issuer: Issuer, shop: Shop, **claims: Any) -> str:
    return issuer.token({"tenant": shop.name, "role": "tenant-admin", **claims})


def encoded(part: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


async def test_a_token_acts_in_its_tenant_and_by_its_role(
    replica: httpx.AsyncClient, issuer: Issuer, shop: Shop, other: Shop, shared_url: str
) -> None:
    admin = bearer(admin_of(issuer, shop, sub="ann\n@shop"))
    body = {"cluster": "main", "consumerGroup": "readers", "topics": ["orders"]}
    assert (await replica.put(f"{shop.path}/monitors/orders", json=body, headers=admin)).status_code == 201
    assert (await replica.get(other.path, headers=admin)).status_code == 404
    assert (await replica.post("/v1/tenants", json={"name": fresh("t")}, headers=admin)).status_code == 403
    viewer = bearer(issuer.token({"tenant": shop.name, "role": "tenant-viewer"}))
    assert (await replica.get(f"{shop.path}/monitors/orders", headers=viewer)).status_code == 200
    assert (await replica.delete(f"{shop.path}/monitors/orders", headers=viewer)).status_code == 403
    everything = bearer(issuer.token({"role": "platform-admin"}))
    assert (await replica.get(other.path, headers=everything)).status_code == 200
    with psycopg.connect(shared_url) as connection:
        written = connection.execute(
            "select a.actor, a.origin from audit_event a join tenant t on t.id = a.tenant_id "
            "where t.name = %s and a.object = 'monitor/orders'",
            (shop.name,),
        ).fetchall()
    assert written == [("oidc ann?@shop", PEER)]


async def test_another_tenant_is_like_none_for_a_token_too(
    replica: httpx.AsyncClient, issuer: Issuer, shop: Shop, other: Shop
) -> None:
    headers = bearer(admin_of(issuer, shop))
    foreign = await replica.get(other.path, headers=headers)
    missing = await replica.get(f"/v1/tenants/{fresh('none')}", headers=headers)
    assert (foreign.status_code, foreign.content) == (missing.status_code, missing.content) == (404, missing.content)


def unsigned(issuer: Issuer, tenant: str) -> str:
    claims = jwt.decode(issuer.token({"tenant": tenant, "role": "tenant-admin"}), options={"verify_signature": False})
    return f"{encoded({'alg': 'none', 'typ': 'JWT', 'kid': issuer.keys[0].kid})}.{encoded(claims)}."


def shared_secret(issuer: Issuer, tenant: str) -> str:
    """Signed by HMAC with what everybody can read: the public key, as a text."""
    pem = (
        issuer.keys[0]
        .private.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    claims = jwt.decode(issuer.token({"tenant": tenant, "role": "tenant-admin"}), options={"verify_signature": False})
    signing = f"{encoded({'alg': 'HS256', 'typ': 'JWT', 'kid': issuer.keys[0].kid})}.{encoded(claims)}"
    algorithm = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    signature = base64.urlsafe_b64encode(algorithm.sign(signing.encode(), pem)).rstrip(b"=").decode()
    return f"{signing}.{signature}"


def of_another_key(issuer: Issuer, tenant: str) -> str:
    """Under the id of a published key."""
    own = replace(SigningKey.make(), kid=issuer.keys[0].kid)
    return issuer.token({"tenant": tenant, "role": "tenant-admin"}, key=own)


def of_an_unpublished_key(issuer: Issuer, tenant: str) -> str:
    return issuer.token({"tenant": tenant, "role": "tenant-admin"}, key=SigningKey.make())


def of_another_algorithm(issuer: Issuer, tenant: str) -> str:
    """An elliptic key under the id of an RSA key, and an algorithm that is allowed."""
    own = replace(SigningKey.make("ES256"), kid=issuer.keys[0].kid)
    return issuer.token({"tenant": tenant, "role": "tenant-admin"}, key=own)


def changed(issuer: Issuer, tenant: str) -> str:
    """The claims of one token under the signature of another."""
    head, _, signature = issuer.token({"tenant": fresh("none"), "role": "tenant-viewer"}).split(".")
    _, claims, _ = issuer.token({"tenant": tenant, "role": "tenant-admin"}).split(".")
    return f"{head}.{claims}.{signature}"


def saying(**claims: Any) -> Forged:
    def made(issuer: Issuer, tenant: str) -> str:
        return issuer.token({"tenant": tenant, "role": "tenant-admin", **claims})

    return made


def deep(issuer: Issuer, _tenant: str) -> str:
    """Nested deeper than a parser likes."""
    claims = base64.urlsafe_b64encode(b'{"a":' + b"[" * 4000 + b"]" * 4000 + b"}").rstrip(b"=").decode()
    return f"{encoded({'alg': 'RS256', 'kid': issuer.keys[0].kid})}.{claims}.AAAA"


NOW = int(time.time())


FORGED: list[tuple[Forged, str]] = [
    (unsigned, "token_algorithm"),
    (shared_secret, "token_algorithm"),
    (of_another_key, "token_signature"),
    (of_an_unpublished_key, "token_unknown_key"),
    (of_another_algorithm, "token_algorithm"),
    (changed, "token_signature"),
    (saying(iss="https://login.example"), "token_issuer"),
    (saying(iss=None), "token_issuer"),
    (saying(aud="somebody-else"), "token_audience"),
    (saying(aud=None), "token_claims"),
    (saying(exp=NOW - 3600), "token_expired"),
    (saying(exp=None), "token_claims"),
    (saying(sub=None), "token_claims"),
    (saying(nbf=NOW + 36_000), "token_not_yet_valid"),
    (saying(exp="soon"), "token_malformed"),
    (deep, "token_malformed"),
    (lambda *_: "a.b.c", "token_malformed"),
    (lambda *_: f"{'a' * 20_000}.b.c", "token_malformed"),
    (lambda *_: "a.b", "malformed"),
]


async def test_what_is_no_valid_token_is_refused_and_counted_by_its_reason(
    replica: httpx.AsyncClient, issuer: Issuer, shop: Shop
) -> None:
    assert (await replica.get(shop.path, headers=bearer(admin_of(issuer, shop)))).status_code == 200
    none = await replica.get(shop.path)
    assert none.headers["www-authenticate"] == "Bearer"
    for number, (forged, reason) in enumerate(FORGED):
        before = failures(reason)
        answer = await replica.get(shop.path, headers=bearer(forged(issuer, shop.name)))
        assert answer.status_code == 401, f"{number} {reason}"
        # Nothing but the counter tells the reasons apart.
        assert (answer.content, answer.headers) == (none.content, none.headers)
        assert failures(reason) == before + 1, f"{number} {reason}"


async def test_a_clock_that_is_a_little_off_is_forgiven(replica: httpx.AsyncClient, issuer: Issuer, shop: Shop) -> None:
    now = int(time.time())
    for claims in ({"exp": now - 10}, {"nbf": now + 20, "iat": now + 20}):
        assert (await replica.get(shop.path, headers=bearer(admin_of(issuer, shop, **claims)))).status_code == 200


async def test_what_stands_for_nobody_here_is_one_answer(
    replica: httpx.AsyncClient, issuer: Issuer, shop: Shop, other: Shop
) -> None:
    before = failures("token_not_mapped")
    claims: list[dict[str, Any]] = [
        {"tenant": fresh("none"), "role": "tenant-admin"},
        {"tenant": "No Name\x00", "role": "tenant-admin"},
        {"tenant": None, "role": "tenant-admin"},
        {"tenant": [shop.name, other.name], "role": "tenant-admin"},
        {"tenant": 7, "role": "tenant-admin"},
        {"tenant": shop.name, "role": None},
        {"tenant": shop.name, "role": "king"},
        {"tenant": shop.name, "role": {"tenant-admin": True}},
    ]
    answers = [await replica.get(shop.path, headers=bearer(issuer.token(each))) for each in claims]
    assert {(answer.status_code, answer.content) for answer in answers} == {(403, answers[0].content)}
    assert failures("token_not_mapped") == before + len(claims)


async def test_claims_are_mapped_by_settings(issuer: Issuer, shop: Shop, other: Shop, shared_url: str) -> None:
    rules = replace(
        read_rules(issuer),
        tenant_claim="https://claims.example/groups",
        tenants={"/team-a": shop.name, "/team-b": other.name},
        role_claim="realm_access.roles",
        roles={"writers": "tenant-admin", "readers": "tenant-viewer", "owners": "platform-admin"},
    )
    async with serving(shared_url, tokens=TokenVerifier(rules, IssuerKeys(issuer.url))) as replica:

        async def status(path: str, groups: list[str], roles: list[str]) -> int:
            claims = {"https://claims.example/groups": groups, "realm_access": {"roles": roles}}
            return (await replica.get(path, headers=bearer(issuer.token(claims)))).status_code

        keys = f"{shop.path}/keys"
        assert await status(keys, ["/team-a", "/everybody"], ["readers", "writers", "x"]) == 200
        assert await status(keys, ["/team-a"], ["readers"]) == 403
        assert await status(keys, ["/team-b"], ["writers"]) == 404
        assert await status(keys, [], ["owners"]) == 200
        # Where values are mapped, our own names mean nothing.
        assert await status(keys, [shop.name], ["writers"]) == 403
        assert await status(keys, ["/team-a"], ["platform-admin"]) == 403


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
async def test_a_rotation_at_the_issuer_counts_at_once(
    replica: httpx.AsyncClient, issuer: Issuer, shop: Shop, algorithm: str
) -> None:
    before = admin_of(issuer, shop)
    assert (await replica.get(shop.path, headers=bearer(before))).status_code == 200
    issuer.rotate(algorithm)
    for token in (admin_of(issuer, shop), before):
        assert (await replica.get(shop.path, headers=bearer(token))).status_code == 200
    issuer.rotate(forget=True)
    assert (await replica.get(shop.path, headers=bearer(admin_of(issuer, shop)))).status_code == 200
    # What the issuer took back is forgotten with the same look.
    assert (await replica.get(shop.path, headers=bearer(before))).status_code == 401


async def test_unknown_keys_do_not_make_us_ask_without_end(
    replica: httpx.AsyncClient, issuer: Issuer, shop: Shop, clock: Hours
) -> None:
    assert (await replica.get(shop.path, headers=bearer(admin_of(issuer, shop)))).status_code == 200
    strangers = [of_an_unpublished_key(issuer, shop.name) for _ in range(6)]
    for token in strangers:
        assert (await replica.get(shop.path, headers=bearer(token))).status_code == 401
    assert issuer.request_counts["/keys"] <= 5
    issuer.rotate()
    clock.ahead += 6
    assert (await replica.get(shop.path, headers=bearer(admin_of(issuer, shop)))).status_code == 200


async def test_tokens_for_others_never_make_us_ask(replica: httpx.AsyncClient, issuer: Issuer, shop: Shop) -> None:
    for forged in (unsigned, shared_secret, saying(iss="https://login.example")):
        assert (await replica.get(shop.path, headers=bearer(forged(issuer, shop.name)))).status_code == 401
    assert issuer.request_counts == {}


async def test_many_first_tokens_ask_once(replica: httpx.AsyncClient, issuer: Issuer, shop: Shop) -> None:
    headers = bearer(admin_of(issuer, shop))
    answers = await asyncio.gather(*(replica.get(shop.path, headers=headers) for _ in range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert issuer.request_counts["/keys"] == 1


async def test_without_its_issuer_only_tokens_fail(
    replica: httpx.AsyncClient, issuer: Issuer, shop: Shop, clock: Hours
) -> None:
    key = await shop.key("tenant-viewer")
    token = bearer(admin_of(issuer, shop))
    issuer.stop()
    answer = await replica.get(shop.path, headers=token)
    assert answer.status_code == 503
    assert answer.json()["type"] == "urn:lagscale:problem:token-issuer-unavailable"
    assert answer.headers["retry-after"]
    for headers in (key, bearer(ADMIN)):
        assert (await replica.get(shop.path, headers=headers)).status_code == 200
    issuer.start()
    clock.ahead += 3
    assert (await replica.get(shop.path, headers=token)).status_code == 200


async def test_known_keys_count_for_an_hour_without_the_issuer(
    replica: httpx.AsyncClient, issuer: Issuer, shop: Shop, clock: Hours
) -> None:
    token = bearer(admin_of(issuer, shop))
    assert (await replica.get(shop.path, headers=token)).status_code == 200
    issuer.stop()
    clock.ahead += 3000
    assert (await replica.get(shop.path, headers=token)).status_code == 200
    clock.ahead += 700
    assert (await replica.get(shop.path, headers=token)).status_code == 503


async def test_a_silent_issuer_holds_up_nobody_else(replica: httpx.AsyncClient, issuer: Issuer, shop: Shop) -> None:
    key = await shop.key("tenant-viewer")
    issuer.silent = True
    try:
        waiting = asyncio.create_task(replica.get(shop.path, headers=bearer(admin_of(issuer, shop))))
        begun = time.monotonic()
        assert (await replica.get(shop.path, headers=key)).status_code == 200
        assert time.monotonic() - begun < 2
        assert (await waiting).status_code == 503
        assert time.monotonic() - begun < 6
        # Who comes next does not wait once more.
        begun = time.monotonic()
        assert (await replica.get(shop.path, headers=bearer(admin_of(issuer, shop)))).status_code == 503
        assert time.monotonic() - begun < 1.5
    finally:
        issuer.silent = False


async def test_a_broken_issuer_is_like_none(replica: httpx.AsyncClient, issuer: Issuer, shop: Shop) -> None:
    issuer.broken = True
    assert (await replica.get(shop.path, headers=bearer(admin_of(issuer, shop)))).status_code == 503


async def test_an_issuer_proves_itself_by_its_certificate(shop: Shop, shared_url: str, tmp_path: Path) -> None:
    certificates = Certificates.make(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "server.pem")
    assert certificates.authority
    with Issuer(tls=context, name="localhost") as issuer:
        for ca_file, status in ((tmp_path / "authority.pem", 200), (None, 503)):
            async with serving(
                shared_url, tokens=TokenVerifier(read_rules(issuer), IssuerKeys(issuer.url, ca_file))
            ) as replica:
                answer = await replica.get(shop.path, headers=bearer(admin_of(issuer, shop)))
                assert answer.status_code == status, answer.text


async def test_tokens_mean_nothing_while_no_issuer_is_set(issuer: Issuer, shop: Shop, shared_url: str) -> None:
    before = failures("malformed")
    async with serving(shared_url) as replica:
        assert (await replica.get(shop.path, headers=bearer(admin_of(issuer, shop)))).status_code == 401
    assert failures("malformed") == before + 1
