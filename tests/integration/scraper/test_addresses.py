"""A broker that advertises another address: what the rules refuse is never connected to, and is a named state."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from devstack.broker import Broker
from devstack.server import free_port, wait_until
from lagscale.domain.state_codes import StateCode
from lagscale.kafka import resolver_guard
from lagscale.kafka.addresses import AddressRules
from services.scraper.kafka.cluster import KafkaCluster
from services.scraper.polling.poll import PollClient
from services.scraper.polling.round import PollProblem
from tests.support.canary import Canary

pytestmark = pytest.mark.integration
World = Any


@pytest.fixture(scope="module")
def canary() -> Iterator[Canary]:
    made = Canary()
    yield made
    made.close()


@pytest.fixture(scope="module")
def visited() -> Iterator[Canary]:
    """Another one, for a client without rules."""
    made = Canary()
    yield made
    made.close()


@pytest.fixture(scope="module")
def luring(canary: Canary, visited: Canary) -> Iterator[Broker]:
    """A broker whose second and third listeners advertise the canaries' addresses."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LAGSCALE_DEVSTACK_KAFKA_BOOTSTRAP", raising=False)
        server = Broker(listeners=3, advertised={1: canary.address, 2: visited.address})
    with server:
        yield server


@pytest.fixture
def luring_world(luring: Broker, make_world: Callable[[Broker], World]) -> World:
    return make_world(luring)


def only(*addresses: str) -> AddressRules:
    """Rules that admit just these `host:port` on loopback."""
    return AddressRules.parse([f"127.0.0.1/32:{address.rpartition(':')[2]}" for address in addresses])


def limited(world: World, rules: AddressRules) -> World:
    world.options = replace(world.options, addresses=rules.text)
    return world


def test_a_refused_listener_is_never_connected_to_and_names_the_clusters_state(
    luring_world: World, luring: Broker, canary: Canary
) -> None:
    before = canary.visits
    world = limited(luring_world, only(*luring.addresses))
    topic = world.topic()
    world.produce(topic, 3)
    lured = world.cluster(luring.addresses[1])
    fair = world.cluster(luring.addresses[0])
    (unmeasured,) = world.monitor(lured, f"g-{uuid.uuid4().hex[:8]}", topic)
    (measured,) = world.monitor(fair, f"g-{uuid.uuid4().hex[:8]}", topic)
    wait_until(lambda: world.tick() is not None and world.rows(measured) != [], 30, "the fair cluster was measured")
    world.tick()
    assert world.cluster_state(lured) == "address_refused"
    assert world.state(unmeasured) == "cluster"
    assert world.rows(unmeasured) == []
    assert world.cluster_state(fair) == "ok"
    (message,) = world.ask("select message from cluster_state where cluster_id = %s", lured)[0]
    assert canary.address not in message
    assert "127.0.0.1" not in message
    assert canary.visits == before


def test_without_rules_the_client_connects_to_what_the_broker_advertises(luring: Broker, visited: Canary) -> None:
    # So a canary can be visited, and nothing but the rules keeps clients away.
    client = KafkaCluster({"bootstrap.servers": luring.addresses[2]})
    client.list_topics(_soon())
    wait_until(lambda: visited.visits > 0, 10, "the advertised address was visited")


@pytest.mark.parametrize("asked", ["topics", "listing", "groups"])
def test_whatever_is_asked_first_is_refused(asked: str, luring: Broker, canary: Canary) -> None:
    before = canary.visits
    client = KafkaCluster({"bootstrap.servers": luring.addresses[1]}, rules=only(*luring.addresses))
    answers = {
        "topics": lambda: client.describe_topics(["orders"], _soon())["orders"],
        "listing": lambda: client.list_topics(_soon()),
        "groups": lambda: client.request_groups(["readers"], _soon())()["readers"],
    }
    assert answers[asked]() == PollProblem(StateCode.ADDRESS_REFUSED)
    assert canary.visits == before


@pytest.mark.parametrize("spelling", ["127.0.0.1", "localhost", "0x7f.1", "2130706433"])
def test_a_refused_bootstrap_server_is_not_connected_to_however_it_is_written(spelling: str, canary: Canary) -> None:
    before = canary.visits
    for rules in (AddressRules.parse("", private_refused=True), only("127.0.0.1:1"), AddressRules.parse("localhost")):
        client = KafkaCluster({"bootstrap.servers": f"{spelling}:{canary.port}"}, rules=rules)
        assert client.describe_topics(["orders"], _soon())["orders"] == PollProblem(StateCode.ADDRESS_REFUSED)
    assert canary.visits == before


def test_a_name_is_checked_by_what_the_client_itself_resolves(luring: Broker, canary: Canary) -> None:
    # Each of the client's own lookups is checked: a name that was allowed at registration may resolve elsewhere later.
    before = canary.visits
    client = KafkaCluster({"bootstrap.servers": f"localhost:{canary.port}"}, rules=only(*luring.addresses))
    wait_until(
        lambda: client.describe_topics(["orders"], _soon())["orders"] == PollProblem(StateCode.ADDRESS_REFUSED),
        10,
        "it was refused",
    )
    assert canary.visits == before


def test_a_host_that_does_not_resolve_is_unreachable_and_not_refused() -> None:
    rules = AddressRules.parse("kafka.invalid,127.0.0.0/8")
    client: PollClient = KafkaCluster({"bootstrap.servers": "b-1.kafka.invalid:9092"}, rules=rules)
    assert client.describe_topics(["orders"], _soon())["orders"] == PollProblem(StateCode.UNREACHABLE)


def test_a_closed_port_at_an_admitted_address_is_unreachable() -> None:
    address = f"127.0.0.1:{free_port()}"
    client = KafkaCluster({"bootstrap.servers": address}, rules=only(address))
    assert client.describe_topics(["orders"], _soon())["orders"] == PollProblem(StateCode.UNREACHABLE)


def test_a_guarded_client_finds_its_broker_again_after_a_restart(
    make_world: Callable[[Broker], World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LAGSCALE_DEVSTACK_KAFKA_BOOTSTRAP", raising=False)
    with Broker() as server:
        world = limited(make_world(server), only(server.address))
        topic = world.topic()
        cluster = world.cluster()
        (target,) = world.monitor(cluster, f"g-{uuid.uuid4().hex[:8]}", topic)
        wait_until(lambda: world.tick() is not None and world.rows(target) != [], 30, "it was measured")
        server.kill()
        wait_until(lambda: world.tick() is not None and world.cluster_state(cluster) != "ok", 30, "it was missed")
        server.start()
        count = len(world.rows(target))
        wait_until(lambda: world.tick() is not None and len(world.rows(target)) > count, 40, "it was measured again")
        assert world.cluster_state(cluster) == "ok"
        world.close()


def test_a_client_that_cannot_enforce_the_rules_is_not_created(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise RuntimeError("this build of the Kafka client cannot enforce address restrictions")

    monkeypatch.setattr(resolver_guard, "_load_library", missing)
    config = {"bootstrap.servers": "127.0.0.1:1"}
    with pytest.raises(ValueError, match="refuses the settings"):
        KafkaCluster(config, rules=AddressRules.parse("10.0.0.0/8"))
    # Without limits nothing of it is used.
    assert KafkaCluster(config).needs_replacement is False


def _soon() -> float:
    return time.monotonic() + 3
