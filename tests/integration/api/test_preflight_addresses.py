"""A preflight under limits of addresses: what is refused is told, and never connected to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from devstack.broker import Broker
from lagscale.kafka.addresses import AddressRules
from lagscale.kafka.probe.runner import ProbeRunner
from tests.integration.api.conftest import Shop
from tests.support.canary import Canary

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def canary() -> Iterator[Canary]:
    made = Canary()
    yield made
    made.close()


@pytest.fixture(scope="module")
def luring(canary: Canary) -> Iterator[Broker]:
    """A broker whose second listener advertises the canary's address."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LAGSCALE_DEVSTACK_KAFKA_BOOTSTRAP", raising=False)
        server = Broker(listeners=2, advertised={1: canary.address})
    with server:
        yield server


@pytest.fixture
def probe_runner(luring: Broker) -> tuple[AddressRules, ProbeRunner]:
    """Only the broker's own listeners may be connected to."""
    ports = [address.rpartition(":")[2] for address in luring.addresses]
    return AddressRules.parse([f"127.0.0.1/32:{port}" for port in ports]), ProbeRunner(seconds=8)


async def looked_at(shop: Shop, *addresses: str) -> tuple[list[dict[str, str]], dict[str, Any]]:
    """The warnings of the registration, and the preflight."""
    made = await shop.api.put(f"{shop.path}/clusters/lured", json={"bootstrapServers": list(addresses)})
    assert made.status_code == 201, made.text
    answer = await shop.api.post(f"{shop.path}/clusters/lured/preflight")
    assert answer.status_code == 200, answer.text
    return made.json()["warnings"], answer.json()


async def test_an_advertised_listener_that_is_refused_ends_the_look(shop: Shop, luring: Broker, canary: Canary) -> None:
    before = canary.visits
    warnings, found = await looked_at(shop, luring.addresses[1])
    assert found["problem"] == "address_refused"
    assert found["accessChecks"] == []
    (advertised,) = found["advertised"]
    assert advertised["address"] == canary.address
    assert (advertised["resolved"]["outcome"], advertised["connected"]["outcome"]) == ("failed", "not_tried")
    assert f"advertises {canary.address}" in warnings[0]["text"]
    assert canary.visits == before


@pytest.mark.parametrize("spelling", ["127.0.0.1", "localhost", "0x7f.1", "2130706433", "[::ffff:127.0.0.1]"])
async def test_a_refused_bootstrap_server_is_not_even_knocked_at(
    shop: Shop, luring: Broker, canary: Canary, spelling: str
) -> None:
    before = canary.visits
    warnings, found = await looked_at(shop, f"{spelling}:{canary.port}", luring.addresses[0])
    assert found["addresses"][0]["resolved"]["outcome"] == "failed"
    assert found["addresses"][0]["connected"]["outcome"] == "not_tried"
    assert "that is not allowed" in warnings[0]["text"]
    # The other server is good, so the rest is looked at by it.
    assert found["addresses"][1]["answered"]["outcome"] == "ok"
    assert canary.visits == before


async def test_the_cloud_s_metadata_service_is_refused_without_saying_why(shop: Shop) -> None:
    warnings, found = await looked_at(shop, "169.254.169.254:80")
    assert found["problem"] == "address_refused"
    assert "ask a platform administrator" in warnings[0]["text"]
    assert found["seconds"] < 4


async def test_a_monitor_on_a_refused_cluster_is_warned_of(shop: Shop, luring: Broker, canary: Canary) -> None:
    before = canary.visits
    await looked_at(shop, luring.addresses[1])
    made = await shop.monitor("orders", cluster="lured")
    assert made.status_code == 201
    assert [warning["field"] for warning in made.json()["warnings"]] == ["cluster"]
    assert "that is not allowed" in made.json()["warnings"][0]["text"]
    assert canary.visits == before
