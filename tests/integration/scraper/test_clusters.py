"""Clusters that refuse or do not answer: a named state, no round, and nothing lost for the others."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from devstack.broker import Broker
from devstack.server import free_port, wait_until

pytestmark = pytest.mark.integration
World = Any


@pytest.fixture(scope="module")
def guarded() -> Iterator[Broker]:
    """A broker with SASL and TLS listeners; never the one of the environment, which need not have them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LAGSCALE_DEVSTACK_KAFKA_BOOTSTRAP", raising=False)
        server = Broker(sasl=True, tls=True)
    with server:
        yield server


def sasl(mechanism: str) -> dict[str, object]:
    return {"protocol": "SASL_PLAINTEXT", "mechanism": mechanism, "username": Broker.USER}


def unread(world: World, address: str, security: dict[str, object], secrets: dict[str, str]) -> tuple[int, int]:
    cluster = world.cluster(address, security, secrets)
    (target,) = world.monitor(cluster, f"g-{uuid.uuid4().hex[:8]}", "orders")
    return cluster, target


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_the_right_password_is_let_in(world: World, guarded: Broker, mechanism: str) -> None:
    cluster, target = unread(world, guarded.sasl_address, sasl(mechanism), {"password": Broker.PASSWORD})
    wait_until(lambda: world.tick() and world.cluster_state(cluster) == "ok", 20, "the cluster was polled")
    assert world.state(target) == "no_topic"


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password_is_a_named_state_and_no_round(world: World, guarded: Broker, mechanism: str) -> None:
    cluster, target = unread(world, guarded.sasl_address, sasl(mechanism), {"password": "wrong"})
    world.tick()
    assert world.cluster_state(cluster) == "authentication_failed"
    assert world.state(target) == "cluster"
    assert world.rows(target) == []
    (message,) = world.ask("select message from cluster_state where cluster_id = %s", cluster)[0]
    assert "wrong" not in message
    assert guarded.sasl_address not in message


def test_tls_with_a_client_certificate_is_let_in_and_without_it_is_a_named_state(world: World, guarded: Broker) -> None:
    made = guarded.certificates
    assert made is not None
    security: dict[str, object] = {
        "protocol": "SSL",
        "ca": made.authority,
        "certificate": made.client.certificate,
    }
    good, target = unread(world, guarded.tls_address, security, {"key": made.client.key})
    bad, _ = unread(world, guarded.tls_address, {"protocol": "SSL", "ca": made.authority}, {})
    wait_until(lambda: world.tick() and world.cluster_state(good) == "ok", 20, "the cluster was polled")
    assert world.state(target) == "no_topic"
    assert world.cluster_state(bad) in {"tls_failed", "authentication_failed", "unreachable"}


def test_a_dead_cluster_costs_the_others_nothing(world: World) -> None:
    topic, group = world.topic(), f"g-{uuid.uuid4().hex[:8]}"
    (target,) = world.monitor(world.cluster(), group, topic)

    def measured() -> int:
        return sum(row["lags"] == [0] for row in world.rows(target))

    def ticked() -> bool:
        world.tick()
        return measured() > 0

    # A new group has no coordinator at first.
    wait_until(ticked, 30, "the good cluster was not measured")
    before = measured()
    dead = [unread(world, f"127.0.0.1:{free_port()}", {"protocol": "PLAINTEXT"}, {})[0] for _ in range(20)]
    began = time.monotonic()
    # Not all of them are asked at once.
    world.tick()
    world.tick()
    spent = time.monotonic() - began
    assert {world.cluster_state(cluster) for cluster in dead} == {"unreachable"}
    assert measured() == before + 2
    # Twenty deadlines one after the other would be twenty seconds.
    assert spent < 10


def test_a_secret_that_cannot_be_decrypted_is_a_named_state(world: World) -> None:
    cluster, target = unread(world, world.broker.address, sasl("PLAIN"), {"password": "x"})
    world.ask("update cluster set secrets = 'garbage' where id = %s", cluster)
    world.tick()
    assert world.cluster_state(cluster) == "secrets_unreadable"
    assert world.state(target) == "cluster"


def test_settings_that_the_client_refuses_are_a_named_state(world: World) -> None:
    cluster, _ = unread(world, world.broker.address, {"protocol": "SSL", "ca": "no certificate"}, {})
    world.tick()
    assert world.cluster_state(cluster) == "settings_refused"


def test_a_state_keeps_the_time_since_when_it_is_so(world: World) -> None:
    cluster, _ = unread(world, f"127.0.0.1:{free_port()}", {"protocol": "PLAINTEXT"}, {})
    world.tick()
    first = world.ask("select since from cluster_state where cluster_id = %s", cluster)
    world.tick()
    assert world.ask("select since from cluster_state where cluster_id = %s", cluster) == first


def test_a_changed_password_takes_effect_with_the_next_polls(world: World, guarded: Broker) -> None:
    cluster, _ = unread(world, guarded.sasl_address, sasl("SCRAM-SHA-512"), {"password": "wrong"})
    world.tick()
    assert world.cluster_state(cluster) == "authentication_failed"
    from lagscale.store.encryption import Keyring

    encrypted = Keyring(world.key).encrypt({"password": Broker.PASSWORD})
    world.ask("update cluster set secrets = %s, version = version + 1 where id = %s", encrypted, cluster)
    wait_until(lambda: world.tick() is not None and world.cluster_state(cluster) == "ok", 20, "it was let in")
