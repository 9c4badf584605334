"""Looks at clusters that want a token, whose secrets stand outside, or that have properties of the client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from devstack.broker import Broker
from devstack.issuer import Client, Issuer
from devstack.secure_listeners import SecureListeners
from lagscale.kafka.addresses import ANY_ADDRESS, AddressRules
from lagscale.kafka.probe.runner import ProbeRunner
from lagscale.kafka.secrets import SecretSources
from tests.integration.api.conftest import Shop, open_shop
from tests.support.api_server import ADMIN, bearer, serving

pytestmark = pytest.mark.integration
CLIENT, SECRET = "lagscale", "canary-of-a-client"


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with Issuer("kafka", lifetime_seconds=600) as made:
        made.clients[CLIENT] = Client(SECRET)
        yield made


@pytest.fixture(scope="module")
def secured(issuer: Issuer) -> Iterator[Broker]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LAGSCALE_DEVSTACK_KAFKA_BOOTSTRAP", raising=False)
        server = Broker(tls=True, secured=SecureListeners(Broker.USER, Broker.PASSWORD, issuer))
    with server:
        yield server


@pytest.fixture
def limits() -> AddressRules:
    return ANY_ADDRESS


@pytest.fixture
async def api(shared_url: str, tmp_path: Path, limits: AddressRules) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(
        shared_url, probe_runner=(limits, ProbeRunner(seconds=8)), secret_sources=SecretSources(tmp_path)
    ) as client:
        client.headers.update(bearer(ADMIN))
        yield client


@pytest.fixture
async def shop(api: httpx.AsyncClient) -> Shop:
    return await open_shop(api)


async def looked(shop: Shop, broker: Broker, body: dict[str, Any]) -> dict[str, Any]:
    """The preflight of a cluster with this body, on the listener of its protocol."""
    assert broker.secured is not None
    address = broker.secured.address(body["security"]["protocol"])
    made = await shop.api.put(
        f"{shop.path}/clusters/kind?preflight=false", json={"bootstrapServers": [address], **body}
    )
    assert made.status_code == 201, made.text
    answer = await shop.api.post(f"{shop.path}/clusters/kind/preflight")
    assert answer.status_code == 200, answer.text
    assert "canary" not in made.text + answer.text
    return dict(answer.json())


def by_token(issuer: Issuer, **more: str) -> dict[str, str]:
    return {
        "protocol": "SASL_PLAINTEXT", "mechanism": "OAUTHBEARER", "username": CLIENT, "tokenUrl": issuer.token_url,
    } | more  # fmt: skip


async def test_a_token_is_asked_for_and_shown_to_the_broker(shop: Shop, secured: Broker, issuer: Issuer) -> None:
    found = await looked(shop, secured, {"security": by_token(issuer), "secrets": {"password": SECRET}})
    assert found["problem"] == ""
    assert found["addresses"][0]["authenticated"]["outcome"] == "ok"
    assert found["accessChecks"][0] == found["accessChecks"][0] | {
        "permission": "describe_cluster",
        "status": "granted",
    }


async def test_without_a_token_nothing_is_asked_of_the_cluster(shop: Shop, secured: Broker, issuer: Issuer) -> None:
    found = await looked(shop, secured, {"security": by_token(issuer), "secrets": {"password": "another canary"}})
    assert found["problem"] == "token_unavailable"
    assert "HTTP 401: invalid_client" in found["text"]
    assert found["addresses"] == []
    assert [warning["text"] for warning in found["warnings"]] == [found["text"]]


class TestWhereTokensMayComeFrom:
    """The limits of addresses hold for the token's endpoint before it is asked."""

    @pytest.fixture
    def limits(self, secured: Broker) -> AddressRules:
        assert secured.secured is not None
        ports = {int(one.rpartition(":")[2]) for one in (secured.address, secured.secured.address("SASL_PLAINTEXT"))}
        return AddressRules.parse([f"127.0.0.1/32:{port}" for port in ports])

    async def test_an_endpoint_outside_of_them_is_not_asked(self, shop: Shop, secured: Broker, issuer: Issuer) -> None:
        before = issuer.request_counts.get("/token", 0)
        found = await looked(shop, secured, {"security": by_token(issuer), "secrets": {"password": SECRET}})
        assert found["problem"] == "token_unavailable"
        assert "the token URL resolves to an address" in found["text"]
        assert issuer.request_counts.get("/token", 0) == before


async def test_a_password_that_stands_in_a_file_is_read_there(shop: Shop, secured: Broker, tmp_path: Path) -> None:
    body = {
        "security": {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": Broker.USER},
        "secrets": {"password": {"file": "kafka/password"}},
    }
    missing = await looked(shop, secured, body)
    assert missing["problem"] == "reference_broken"
    assert "password: file not found" in missing["text"]
    file = tmp_path / shop.name / "kafka" / "password"
    file.parent.mkdir(parents=True)
    file.write_text(Broker.PASSWORD, encoding="utf-8")
    again = await shop.api.post(f"{shop.path}/clusters/kind/preflight")
    assert again.json()["problem"] == "", again.text


async def test_what_this_client_lacks_and_whose_role_this_is_not_are_told(shop: Shop, secured: Broker) -> None:
    kerberos = {"protocol": "SASL_PLAINTEXT", "mechanism": "GSSAPI", "username": "lagscale"}
    assert (await looked(shop, secured, {"security": kerberos}))["problem"] == "mechanism_missing"
    await shop.api.delete(f"{shop.path}/clusters/kind")
    role = {"protocol": "SASL_SSL", "mechanism": "AWS_MSK_IAM", "awsRegion": "eu-west-1", "awsPodRole": "true"}
    found = await looked(shop, secured, {"security": role})
    assert found["problem"] == "token_unavailable"
    assert "only the scraper can use the role" in found["text"]


async def test_properties_count_for_a_look_too(shop: Shop, secured: Broker) -> None:
    # The broker listens on the other kind of address only.
    found = await looked(
        shop, secured, {"security": {"protocol": "SSL"}, "properties": {"broker.address.family": "v6"}}
    )
    assert found["problem"] == "unreachable"
