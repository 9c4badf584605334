"""Share groups on a broker that has them: refused by name, without a round, and nothing lost for the others."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ShareConsumer

from devstack.broker import Broker
from devstack.server import wait_until

pytestmark = pytest.mark.integration


class ShareBroker(Broker):
    """A broker whose storage was formatted with share groups switched on."""

    def _format(self, storage_tool: list[str], properties: Path) -> None:
        argv = [*storage_tool, "format", "--standalone", "-t", "ZGV2c3RhY2stY2x1c3Rlcg", "-c", str(properties)]
        subprocess.run([*argv, "--feature", "share.version=1"], capture_output=True, check=True)


@pytest.fixture(scope="module")
def sharing() -> Iterator[Broker]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LAGSCALE_DEVSTACK_KAFKA_BOOTSTRAP", raising=False)
        server = ShareBroker()
    with server:
        yield server


def test_a_share_group_is_refused_and_a_group_that_is_not_there_is_not(sharing: Broker, make_world: Any) -> None:
    world = make_world(sharing)
    topic, group, empty = world.topic(), f"s-{uuid.uuid4().hex[:8]}", f"g-{uuid.uuid4().hex[:8]}"
    cluster = world.cluster()
    (shared,) = world.monitor(cluster, group, topic)
    (plain,) = world.monitor(cluster, empty, topic)
    consumer = ShareConsumer({"bootstrap.servers": sharing.address, "group.id": group, "log_level": 0})
    consumer.subscribe([topic])
    try:

        def is_refused() -> bool:
            consumer.poll(0.2)
            world.tick()
            return bool(world.state(shared) == "share_group")

        # A kind is checked only now and then, so the group has to exist at its first poll.
        wait_until(lambda: consumer.poll(0.2) is not None and listed(world, group), 30, "the group was there")
        wait_until(is_refused, 30, "the share group was refused")
    finally:
        consumer.close()
    assert world.rows(shared) == []
    assert world.rows(plain)[0]["lags"] == [0]


def listed(world: Any, group: str) -> bool:
    return bool(world.open().find_share_groups([group], world.soon()))
