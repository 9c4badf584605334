"""Brokers that answer oddly: impossible offsets, requests that are never answered, connections that are closed."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from devstack.broker import Broker
from devstack.server import wait_until
from lagscale.kafka.addresses import ANY_ADDRESS
from lagscale.kafka.probe.__main__ import probe_cluster
from lagscale.kafka.probe.result import ProbeRequest, ProbeResult
from tests.support.kafka_proxy import KafkaProxy

pytestmark = pytest.mark.integration
World = Any  # The fixture's class lives in conftest, which is not importable by name.
LIST_OFFSETS, OFFSET_FETCH, LIST_GROUPS = 2, 9, 16
#: Of classic groups, and of those of the newer protocol.
DESCRIBE_GROUPS = (15, 69)


def fresh(prefix: str = "g") -> str:
    return f"{prefix}-{uuid.uuid4().hex[:10]}"


@pytest.fixture(scope="module")
def proxied() -> Iterator[tuple[Broker, KafkaProxy]]:
    """A broker whose second listener advertises a proxy."""
    with pytest.MonkeyPatch.context() as patch, KafkaProxy() as proxy:
        patch.delenv("LAGSCALE_DEVSTACK_KAFKA_BOOTSTRAP", raising=False)
        settings = {"auto.create.topics.enable": "true", "connections.max.idle.ms": "2000"}
        with Broker(listeners=2, advertised={1: proxy.address}, settings=settings) as broker:
            proxy.upstream = broker.addresses[1]
            yield broker, proxy


@pytest.fixture
def proxy(proxied: tuple[Broker, KafkaProxy]) -> Iterator[KafkaProxy]:
    _, proxy = proxied
    yield proxy
    proxy.swallowed, proxy.rewrites = frozenset(), {}


@pytest.fixture
def odd(make_world: Callable[[Broker], World], proxied: tuple[Broker, KafkaProxy], proxy: KafkaProxy) -> World:
    return make_world(proxied[0])


def replace_offset(before: int, after: int) -> Callable[[bytes], bytes]:
    """Of answers with offsets: a partition's entry is a time, -1 here, then its offset."""

    def rewrite(frame: bytes) -> bytes:
        return frame.replace(struct.pack(">qq", -1, before), struct.pack(">qq", -1, after))

    return rewrite


@pytest.mark.parametrize("offset", [2**62, 2**53 + 1, -5])
def test_an_offset_that_no_broker_has_is_an_error_of_its_target_alone(
    odd: World, proxy: KafkaProxy, offset: int
) -> None:
    strange, honest, group, cluster = odd.topic(2), odd.topic(), fresh(), odd.cluster(proxy.address)
    for partition in range(2):
        odd.produce(strange, 23, partition)
    odd.produce(honest, 5)
    odd.commit(group, strange, 3, 3)
    odd.commit(group, honest, 1)
    (bad,), (good,) = odd.monitor(cluster, group, strange), odd.monitor(cluster, group, honest)
    proxy.rewrites[LIST_OFFSETS] = replace_offset(23, offset)
    (part,) = odd.tick()
    assert (part.built, part.stored, part.store_error) == (1, 1, "")
    assert (odd.rows(bad), odd.state(bad)) == ([], "offsets_invalid")
    assert f"partition 0: end offset {offset}" in odd.message(bad)
    assert (odd.rows(good)[0]["lags"], odd.state(good)) == ([4], "ok")
    proxy.rewrites.clear()
    odd.tick()
    assert (odd.rows(bad)[0]["lags"], odd.state(bad)) == ([20, 20], "ok")


def test_lags_whose_sum_is_impossible_are_an_error_of_their_target_alone(odd: World, proxy: KafkaProxy) -> None:
    strange, honest, group, cluster = odd.topic(2), odd.topic(), fresh(), odd.cluster(proxy.address)
    for partition in range(2):
        odd.produce(strange, 23, partition)
    odd.produce(honest, 5)
    odd.commit(group, strange, 3, None)
    odd.commit(group, honest, 1)
    (bad,), (good,) = odd.monitor(cluster, group, strange), odd.monitor(cluster, group, honest)
    proxy.rewrites[LIST_OFFSETS] = replace_offset(23, 2**48 + 3)
    odd.tick()
    assert (odd.rows(bad), odd.state(bad)) == ([], "offsets_invalid")
    assert f"total lag {2**49 + 3}" in odd.message(bad)
    assert (odd.rows(good)[0]["lags"], odd.state(good)) == ([4], "ok")


def test_a_commit_that_no_topic_reaches_is_an_error_of_its_target_alone(odd: World, proxy: KafkaProxy) -> None:
    topic, group, other, cluster = odd.topic(), fresh(), fresh(), odd.cluster(proxy.address)
    odd.produce(topic, 5)
    odd.commit(group, topic, 2**62)
    odd.commit(other, topic, 2)
    (bad,), (good,) = odd.monitor(cluster, group, topic), odd.monitor(cluster, other, topic)
    odd.tick()
    assert (odd.rows(bad), odd.state(bad)) == ([], "offsets_invalid")
    assert f"partition 0: committed offset {2**62}" in odd.message(bad)
    assert (odd.rows(good)[0]["lags"], odd.state(good)) == ([3], "ok")


def test_lag_is_measured_though_groups_are_never_described(odd: World, proxy: KafkaProxy) -> None:
    topics, cluster = [odd.topic() for _ in range(3)], odd.cluster(proxy.address)
    targets = []
    for number, topic in enumerate(topics):
        group = fresh()
        odd.produce(topic, 10)
        odd.commit(group, topic, number)
        targets += odd.monitor(cluster, group, topic)
    # One that nobody has seen is in no listing of groups.
    (unseen,) = odd.monitor(cluster, fresh(), topics[0])
    proxy.swallowed = frozenset(DESCRIBE_GROUPS)
    odd.tick()
    for _ in range(2):
        assert [odd.rows(target)[0]["lags"] for target in (*targets, unseen)] == [[10], [9], [8], [10]]
        assert [odd.rows(target)[0]["members"] for target in (*targets, unseen)] == [None] * 4
        assert [odd.state(target) for target in (*targets, unseen)] == ["members_unknown"] * 4
        assert odd.cluster_state(cluster) == "ok"
        stored = len(odd.rows(unseen))
        odd.tick()
        assert len(odd.rows(unseen)) == stored + 1
    assert "members are not known" in odd.message(unseen)


def test_commits_are_not_asked_for_while_the_broker_answers_nothing_about_groups(odd: World, proxy: KafkaProxy) -> None:
    topic, group = odd.topic(), fresh()
    odd.produce(topic, 10)
    odd.commit(group, topic, 4)
    (target,) = odd.monitor(odd.cluster(proxy.address), group, topic)
    proxy.swallowed = frozenset({*DESCRIBE_GROUPS, LIST_GROUPS})
    begun = len(proxy.requests)
    odd.tick()
    assert OFFSET_FETCH not in proxy.requests[begun:]
    assert odd.state(target) == "timeout"
    assert [row["lags"] for row in odd.rows(target)] == [[None]]


def test_connections_that_the_broker_closes_as_idle_cost_no_round(odd: World, proxy: KafkaProxy) -> None:
    topic, group = odd.topic(), fresh()
    odd.produce(topic, 10)
    odd.commit(group, topic, 4)
    cluster = odd.cluster(proxy.address)
    (target,) = odd.monitor(cluster, group, topic)
    for count in (1, 2, 3):
        odd.tick()
        assert len(odd.rows(target)) == count
        assert (odd.rows(target)[0]["lags"], odd.state(target), odd.cluster_state(cluster)) == ([6], "ok", "ok")
        wait_until(lambda: not proxy.connected, 120, "the broker closed its idle connections")


def test_no_topic_is_created_by_looking_though_brokers_create_them(odd: World, proxy: KafkaProxy) -> None:
    missing, seen, group = fresh("never"), fresh("topic"), fresh()
    cluster = odd.cluster(proxy.address)
    # The broker does create a topic that a producer looks up.
    odd.produce(seen, 1)
    assert seen in odd.admin.list_topics(timeout=5).topics
    (target,) = odd.monitor(cluster, group, missing)
    odd.tick()
    assert odd.state(target) == "no_topic"
    request = ProbeRequest(
        (proxy.address,), {}, {}, ANY_ADDRESS.text, 8.0, groups={group: (missing,)}, topics=(missing,)
    )
    result = ProbeResult()
    probe_cluster(request, result)
    assert (result.problem, [(one.name, one.partitions) for one in result.topics]) == ("", [(missing, 0)])
    assert missing not in AdminClient({"bootstrap.servers": odd.broker.address}).list_topics(timeout=5).topics
