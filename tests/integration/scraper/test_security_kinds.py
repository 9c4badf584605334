"""Every security kind of KEDA's trigger on a real broker, as the API stores it and the scraper uses it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from psycopg.types.json import Jsonb

from devstack.broker import Broker
from devstack.certificates import Certificates
from devstack.issuer import Client, Issuer
from devstack.secure_listeners import SecureListeners
from devstack.server import wait_until
from lagscale.store.encryption import Keyring
from services.api.clusters.security import canonicalize
from services.scraper.engine import worker

pytestmark = pytest.mark.integration
World = Any

CLIENT = "lagscale:eu +1"
SECRET = "s3cret/with&odd=signs +"
#: Seconds; the broker ends connections whose token has ended. Half of it is enough for another client to be there.
LIFE = 20


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    """Whom the broker trusts."""
    with Issuer("kafka", lifetime_seconds=LIFE) as made:
        made.clients[CLIENT] = Client(SECRET)
        yield made


@pytest.fixture(scope="module")
def secured(issuer: Issuer) -> Iterator[Broker]:
    """A broker with every kind of listener."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LAGSCALE_DEVSTACK_KAFKA_BOOTSTRAP", raising=False)
        server = Broker(
            tls=True, secured=SecureListeners(Broker.USER, Broker.PASSWORD, issuer, reauthenticate_ms=60_000)
        )
    with server:
        yield server


def register(world: World, broker: Broker, given: dict[str, Any], secrets: dict[str, Any], address: str = "") -> int:
    """The cluster as the API would store it; its id."""
    found = canonicalize(given, secrets)
    assert broker.secured is not None
    cluster = world.cluster(
        address or broker.secured.address(str(found.security["protocol"])), found.security, found.secrets
    )
    world.ask("update cluster set secret_references = %s where id = %s", Jsonb(found.references), cluster)
    world.monitor(cluster, f"g-{uuid.uuid4().hex[:8]}", "orders")
    return int(cluster)


def comes_to(world: World, cluster: int, state: str) -> str:
    """Tick until the cluster is in this state; its message."""

    def is_so() -> bool:
        world.tick()
        return str(world.cluster_state(cluster)) == state

    wait_until(is_so, 30, f"the cluster came to {state}")
    return str(world.ask("select message from cluster_state where cluster_id = %s", cluster)[0][0])


def ca(broker: Broker) -> str:
    assert broker.certificates is not None
    return broker.certificates.authority


@pytest.mark.parametrize("tls", ["disable", "enable"])
@pytest.mark.parametrize("sasl", ["plaintext", "scram_sha256", "scram_sha512"])
def test_a_password_with_and_without_tls(world: World, secured: Broker, sasl: str, tls: str) -> None:
    given = {"sasl": sasl, "tls": tls, "username": Broker.USER, **({"ca": ca(secured)} if tls == "enable" else {})}
    good = register(world, secured, given, {"password": Broker.PASSWORD})
    bad = register(world, secured, given, {"password": "wrong-canary"})
    comes_to(world, good, "ok")
    assert "canary" not in comes_to(world, bad, "authentication_failed")


def test_tls_alone_and_with_an_authority_that_did_not_sign_it(world: World, secured: Broker) -> None:
    good = register(world, secured, {"tls": "enable", "ca": ca(secured)}, {})
    # The system's authorities did not sign the broker's certificate.
    unknown = register(world, secured, {"tls": "enable"}, {})
    comes_to(world, good, "ok")
    comes_to(world, unknown, "tls_failed")


@pytest.mark.parametrize("sasl", ["none", "plaintext"])
def test_no_tls_at_a_listener_that_uses_it(world: World, secured: Broker, sasl: str) -> None:
    assert secured.secured is not None
    address = secured.secured.address("SSL" if sasl == "none" else "SASL_SSL")
    more = {} if sasl == "none" else {"username": Broker.USER}
    secrets = {} if sasl == "none" else {"password": Broker.PASSWORD}
    cluster = register(world, secured, {"sasl": sasl, **more}, secrets, address)
    assert "set tls to enable" in comes_to(world, cluster, "tls_failed")


def test_tls_at_a_listener_that_does_not_use_it(world: World, secured: Broker) -> None:
    cluster = register(world, secured, {"tls": "enable", "ca": ca(secured)}, {}, secured.address)
    assert "does not use TLS" in comes_to(world, cluster, "tls_failed")


def test_an_authority_that_signed_other_certificates(world: World, secured: Broker, tmp_path: Path) -> None:
    other = Certificates.make(tmp_path).authority
    cluster = register(world, secured, {"tls": "enable", "ca": other}, {})
    assert "`ca` did not sign it" in comes_to(world, cluster, "tls_failed")


def test_an_encrypted_client_key(world: World, secured: Broker) -> None:
    made = secured.certificates
    assert made is not None
    key = serialization.load_pem_private_key(made.client.key.encode(), None)
    wrapped = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"of the key"),
    ).decode()
    given = {"tls": "enable", "ca": made.authority, "cert": made.client.certificate}
    good = register(world, secured, given, {"key": wrapped, "keyPassword": "of the key"}, secured.tls_address)
    bad = register(world, secured, given, {"key": wrapped, "keyPassword": "canary"}, secured.tls_address)
    comes_to(world, good, "ok")
    assert "canary" not in comes_to(world, bad, "settings_refused")


def oauth(broker: Broker, issuer: Issuer, tls: str = "enable", **more: str) -> dict[str, Any]:
    given = {"sasl": "oauthbearer", "tls": tls, "username": CLIENT, "oauthTokenEndpointUri": issuer.token_url}
    return given | ({"ca": ca(broker)} if tls == "enable" else {}) | more


@pytest.mark.parametrize("tls", ["disable", "enable"])
def test_oauthbearer_by_client_credentials(world: World, secured: Broker, issuer: Issuer, tls: str) -> None:
    given = oauth(secured, issuer, tls, scopes="kafka,lag", oauthExtensions="logicalCluster=lkc-1")
    cluster = register(world, secured, given, {"password": SECRET})
    comes_to(world, cluster, "ok")
    # The broker checked the signature.
    assert issuer.request_counts["/keys"] > 0


def test_a_token_is_renewed_before_it_ends_and_the_broker_sees_the_next_one(
    world: World, secured: Broker, issuer: Issuer
) -> None:
    cluster = register(world, secured, oauth(secured, issuer), {"password": SECRET})
    comes_to(world, cluster, "ok")
    before = issuer.request_counts.get("/token", 0)
    states = set()

    def renewed() -> bool:
        world.tick()
        states.add(world.cluster_state(cluster))
        return issuer.request_counts["/token"] >= before + 2

    # After half a life, and again when the first token has ended: its connections are no more.
    wait_until(renewed, 3 * LIFE, "tokens were renewed")
    assert states == {"ok"}


def test_a_wrong_client_secret_is_named_and_never_disclosed(world: World, secured: Broker, issuer: Issuer) -> None:
    cluster = register(world, secured, oauth(secured, issuer), {"password": "canary"})
    message = comes_to(world, cluster, "token_unavailable")
    assert "HTTP 401: invalid_client" in message
    assert "canary" not in message
    assert issuer.url not in message


def test_a_token_that_the_broker_refuses_is_a_refused_credential(world: World, secured: Broker) -> None:
    with Issuer("kafka") as stranger:
        stranger.clients[CLIENT] = Client(SECRET)
        cluster = register(world, secured, oauth(secured, stranger), {"password": SECRET})
        comes_to(world, cluster, "authentication_failed")


def test_a_silent_issuer_delays_no_other_cluster_and_counts_when_it_is_back(
    world: World, secured: Broker, issuer: Issuer
) -> None:
    with Issuer("kafka") as silent:
        silent.silent = True
        hanging = [register(world, secured, oauth(secured, silent), {"password": SECRET}) for _ in range(10)]
        good = register(world, secured, {"sasl": "plaintext", "username": Broker.USER}, {"password": Broker.PASSWORD})
        comes_to(world, good, "ok")
        assert {world.cluster_state(cluster) for cluster in hanging} <= {"token_pending", "token_unavailable"}
        assert "the token endpoint timed out" in comes_to(world, hanging[0], "token_unavailable")


def test_the_token_urls_address_is_checked_before_any_request(world: World, secured: Broker, issuer: Issuer) -> None:
    # Only the broker's own port may be connected to.
    assert secured.secured is not None
    address = secured.secured.address("SASL_SSL")
    world.options = replace(world.options, addresses=f"any;127.0.0.0/8:{address.partition(':')[2]}")
    before = issuer.request_counts.get("/token", 0)
    cluster = register(world, secured, oauth(secured, issuer), {"password": SECRET})
    message = comes_to(world, cluster, "token_unavailable")
    assert "the token URL resolves to an address" in message
    assert issuer.request_counts.get("/token", 0) == before
    worker.close_resources(world.options)


def test_kerberos_is_named_as_missing_from_this_build(world: World, secured: Broker) -> None:
    cluster = world.cluster(
        world.broker.address, {"protocol": "SASL_PLAINTEXT", "mechanism": "GSSAPI", "username": "lagscale"}
    )
    world.monitor(cluster, "g", "orders")
    assert "docs/clusters.md" in comes_to(world, cluster, "mechanism_missing")


def test_a_rotated_file_counts_without_a_restart(world: World, secured: Broker, tmp_path: Path) -> None:
    folder = tmp_path / "acme"
    folder.mkdir()
    (folder / "password").write_text("wrong-canary")
    world.options = replace(world.options, secret_directory=str(tmp_path))
    given = {"sasl": "scram_sha512", "tls": "enable", "username": Broker.USER, "ca": ca(secured)}
    cluster = register(world, secured, given, {"password": {"file": "password"}})
    missing = register(world, secured, given, {"password": {"file": "nothing"}})
    comes_to(world, cluster, "authentication_failed")
    (folder / "new").write_text(Broker.PASSWORD + "\n")
    os.replace(folder / "new", folder / "password")
    comes_to(world, cluster, "ok")
    message = comes_to(world, missing, "reference_broken")
    assert "password: file not found" in message
    assert str(tmp_path) not in message
    worker.close_resources(world.options)


def test_a_variable_of_the_tenant_is_read_and_no_other(
    world: World, secured: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAGSCALE_TENANT_ACME__KAFKA_PASSWORD", Broker.PASSWORD)
    monkeypatch.setenv("LAGSCALE_TENANT_ACME_EU__KAFKA_PASSWORD", "canary")
    given = {"sasl": "plaintext", "tls": "disable", "username": Broker.USER}
    good = register(world, secured, given, {"password": {"env": "KAFKA_PASSWORD"}})
    comes_to(world, good, "ok")
    other = register(world, secured, given, {"password": {"env": "EU_KAFKA_PASSWORD"}})
    assert "variable not set" in comes_to(world, other, "reference_broken")


def test_properties_reach_the_client(world: World, secured: Broker) -> None:
    cluster = register(world, secured, {"tls": "enable", "ca": ca(secured)}, {})
    world.ask(
        "update cluster set properties = %s where id = %s",
        Jsonb({"ssl.cipher.suites": "no such suite"}),
        cluster,
    )
    comes_to(world, cluster, "settings_refused")
    world.ask(
        "update cluster set properties = %s, version = version + 1 where id = %s",
        Jsonb({"broker.address.family": "v4", "client.id": "orders"}),
        cluster,
    )
    comes_to(world, cluster, "ok")


def test_sealed_and_referred_secrets_may_stand_side_by_side(
    world: World, secured: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAGSCALE_TENANT_ACME__USER", Broker.USER)
    cluster = register(
        world, secured, {"sasl": "plaintext"}, {"username": {"env": "USER"}, "password": Broker.PASSWORD}
    )
    encrypted = world.ask("select secrets from cluster where id = %s", cluster)[0][0]
    assert Keyring(world.key).decrypt(encrypted) == {"password": Broker.PASSWORD}
    comes_to(world, cluster, "ok")
