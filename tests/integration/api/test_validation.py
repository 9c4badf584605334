"""What registering a monitor says of its topics, group, window and verdict, asked of a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from devstack.broker import Broker
from devstack.server import free_port, wait_until
from lagscale.kafka.addresses import ANY_ADDRESS, AddressRules
from lagscale.kafka.probe.runner import ProbeRunner
from tests.integration.api.conftest import Shop, fresh
from tests.support.stored_rounds import write

pytestmark = pytest.mark.integration


class Log:
    """Topics and commits of one broker."""

    def __init__(self, server: Broker) -> None:
        self.address = server.address
        self._admin = AdminClient({"bootstrap.servers": server.address})

    def topic(self, messages: int = 0, *, committed: dict[str, int] | None = None, name: str = "topic") -> str:
        name = fresh(name)
        self._admin.create_topics([NewTopic(name, 2, 1)])[name].result(20)
        producer = Producer({"bootstrap.servers": self.address, "linger.ms": 0})
        for _ in range(messages):
            producer.produce(name, b"x", partition=0)
        assert producer.flush(20) == 0
        for group, offset in (committed or {}).items():
            self._commit(group, name, offset)
        return name

    def create(self, names: list[str]) -> None:
        for future in self._admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
            future.result(20)

    def delete_records(self, topic: str, offset: int) -> None:
        cut = TopicPartition(topic, 0, offset)
        self._admin.delete_records([cut])[cut].result(20)

    @contextmanager
    def open_transaction(self, topic: str, messages: int) -> Iterator[None]:
        producer = Producer({"bootstrap.servers": self.address, "transactional.id": fresh("tx"), "linger.ms": 0})
        producer.init_transactions(20)
        producer.begin_transaction()
        for _ in range(messages):
            producer.produce(topic, b"x", partition=0)
        assert producer.flush(20) == 0
        yield
        producer.abort_transaction(20)

    def _commit(self, group: str, topic: str, offset: int) -> None:
        request = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, offset)])

        def taken() -> bool:
            answer = self._admin.alter_consumer_group_offsets([request])[group].result(20)
            return all(partition.error is None for partition in answer.topic_partitions)

        wait_until(taken, 20, "the commit was taken")


@pytest.fixture(scope="module")
def log(broker: Broker) -> Log:
    return Log(broker)


@pytest.fixture
def probe_runner() -> tuple[AddressRules, ProbeRunner]:
    return ANY_ADDRESS, ProbeRunner(seconds=8)


async def ready(shop: Shop, address: str) -> None:
    body = {"bootstrapServers": [address]}
    assert (await shop.api.put(f"{shop.path}/clusters/main?preflight=false", json=body)).status_code == 200


async def validated(shop: Shop, **given: Any) -> dict[str, Any]:
    body = {"cluster": "main", "consumerGroup": "readers", **given}
    answer = await shop.api.post(f"{shop.path}/monitors/validate", json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def said(answer: dict[str, Any]) -> dict[str, str]:
    return {warning["field"]: warning["text"] for warning in answer["warnings"]}


async def test_more_topics_than_a_monitor_may_match_are_a_warning(shop: Shop, log: Log) -> None:
    word = fresh("word")
    log.create([f"{word}-{number:03}" for number in range(101)])
    await ready(shop, log.address)
    text = said(await validated(shop, topicPattern=f"{word}-.*"))["topicPattern"]
    assert text.startswith("101 topics match, and the scraper measures at most 100 per monitor by default")
    assert "LAGSCALE_SCRAPER_MAX_TOPICS_PER_MONITOR" in text
    assert "topicPattern" not in said(await validated(shop, topicPattern=f"{word}-.*", excludeTopics=[f"{word}-000"]))


async def test_a_good_monitor_has_no_warnings_and_the_lag_of_now(shop: Shop, log: Log) -> None:
    group = fresh("group")
    topic = log.topic(7, committed={group: 2})
    await ready(shop, log.address)
    found = await validated(shop, consumerGroup=group, topics=[topic])
    assert found["valid"]
    assert found["errors"] == found["warnings"] == []
    facts = {"partitions": 2, "committedPartitions": 1, "lag": 5, "lost": 0, "unstable": 0}
    assert found["topics"] == [{"name": topic, **facts}]
    assert found["group"] == {"name": group, "groupType": "classic", "members": 0}
    now = found["currentVerdict"]
    assert (now["verdict"], now["value"], now["fromSamples"], now["lag"]) == ("unknown", None, False, 5)
    assert "the current lag is 5 messages" in now["sentence"]
    assert found["window"]["minSamples"] == 13
    assert found["window"]["lookbackSeconds"] < found["window"]["maxLookbackSeconds"]
    # A dry run: nothing was stored.
    assert (await shop.api.get(f"{shop.path}/monitors")).json()["items"] == []


@pytest.mark.parametrize(("end", "committed", "start"), [(22, 0, 22), (100, 10, 90)])
async def test_deleted_messages_are_lost_and_do_not_wait(
    shop: Shop, log: Log, end: int, committed: int, start: int
) -> None:
    lag, lost = end - start, start - committed
    group = fresh("group")
    topic = log.topic(end, committed={group: committed})
    log.delete_records(topic, start)
    await ready(shop, log.address)
    found = await validated(shop, consumerGroup=group, topics=[topic])
    assert [(one["lag"], one["lost"]) for one in found["topics"]] == [(lag, lost)]
    assert found["currentVerdict"]["lag"] == lag
    assert (
        said(found)["consumerGroup"] == f"{lost} messages of {topic} were lost to retention before the group read them"
    )


@pytest.mark.parametrize(("isolation", "lag"), [("read_uncommitted", 1_463), ("read_committed", 0)])
async def test_messages_of_an_open_transaction_are_told(shop: Shop, log: Log, isolation: str, lag: int) -> None:
    group = fresh("group")
    topic = log.topic(200, committed={group: 200})
    await ready(shop, log.address)
    with log.open_transaction(topic, 1_463):
        found = await validated(shop, consumerGroup=group, topics=[topic], policy={"isolationLevel": isolation})
    assert [(one["lag"], one["unstable"]) for one in found["topics"]] == [(lag, 1_463)]
    assert f"1,463 messages of {topic} lie behind an open transaction" in said(found)["topics"]


async def test_a_commit_that_no_topic_reaches_leaves_the_lag_unknown(shop: Shop, log: Log) -> None:
    group = fresh("group")
    topic = log.topic(5, committed={group: 2**60})
    await ready(shop, log.address)
    found = await validated(shop, consumerGroup=group, topics=[topic])
    assert found["topics"][0]["lag"] is found["currentVerdict"]["lag"] is None
    assert f"{topic}, partition 0: committed offset {2**60}" in said(found)["topics"]


async def test_a_missing_topic_and_a_group_without_commits_are_warnings(shop: Shop, log: Log) -> None:
    there = log.topic(3)
    await ready(shop, log.address)
    found = await validated(shop, consumerGroup=fresh("nobody"), topics=[there, "not-there"])
    assert found["valid"]
    assert "topic not-there does not exist" in said(found)["topics.1"]
    assert "neither members nor commits" in said(found)["consumerGroup"]
    assert (
        "counts as no lag: messages written before the first commit are never counted" in said(found)["consumerGroup"]
    )
    assert "set offsetResetPolicy to earliest" in said(found)["consumerGroup"]
    assert [topic["partitions"] for topic in found["topics"]] == [2, 0]
    # Unknown, and never told as no lag.
    assert found["currentVerdict"]["lag"] is None


async def test_where_the_log_counts_from_its_start_nothing_is_told_as_no_lag(shop: Shop, log: Log) -> None:
    there = log.topic(3)
    await ready(shop, log.address)
    found = await validated(
        shop, consumerGroup=fresh("nobody"), topics=[there], policy={"offsetResetPolicy": "earliest"}
    )
    assert "everything in the log counts as lag" in said(found)["consumerGroup"]
    assert found["currentVerdict"]["lag"] is None


async def test_a_group_that_committed_on_another_topic_only_is_told_which(shop: Shop, log: Log) -> None:
    group = fresh("group")
    first, second = log.topic(1, committed={group: 1}), log.topic(1)
    await ready(shop, log.address)
    found = await validated(shop, consumerGroup=group, topics=[first, second])
    assert second in said(found)["consumerGroup"]
    assert first not in said(found)["consumerGroup"]


async def test_topics_of_a_pattern_and_of_a_group_are_found(shop: Shop, log: Log) -> None:
    group, word = fresh("group"), fresh("word")
    topics = [log.topic(2, committed={group: 0}, name=word) for _ in range(2)]
    await ready(shop, log.address)
    by_pattern = await validated(shop, consumerGroup=group, topicPattern=f"{word}.*")
    by_group = await validated(shop, consumerGroup=group)
    assert [topic["name"] for topic in by_pattern["topics"]] == sorted(topics)
    assert [topic["name"] for topic in by_group["topics"]] == sorted(topics)
    assert by_pattern["currentVerdict"]["lag"] == by_group["currentVerdict"]["lag"] == 4
    assert by_group["warnings"] == []
    nobody = await validated(shop, consumerGroup=fresh("nobody"), topicPattern=f"{word}.*")
    assert "neither members nor commits" in said(nobody)["consumerGroup"]
    none = await validated(shop, consumerGroup=group, topicPattern=fresh("none"))
    assert "no topic of the cluster matches" in said(none)["topicPattern"]


async def test_a_limitation_that_leaves_no_partition_is_a_warning(shop: Shop, log: Log) -> None:
    group = fresh("group")
    topic = log.topic(committed={group: 0})
    await ready(shop, log.address)
    inside = await validated(shop, consumerGroup=group, topics=[topic], policy={"partitionLimitation": "1,7"})
    outside = await validated(shop, consumerGroup=group, topics=[topic], policy={"partitionLimitation": "2,7"})
    assert inside["warnings"] == []
    assert "none of the 2 partitions" in said(outside)["policy.partitionLimitation"]


async def test_errors_are_told_apart_from_warnings(shop: Shop, log: Log) -> None:
    await ready(shop, log.address)
    found = await validated(
        shop, cluster="none", topics=["t"], policy={"windowSize": 3, "sustainSeconds": 120, "lagThreshold": 0}
    )
    assert not found["valid"]
    assert {"cluster", "policy.lagThreshold"} < {fault["field"] for fault in found["errors"]}
    assert any("windowSize" in fault["field"] for fault in found["errors"])
    assert found["currentVerdict"] is None
    short = await validated(shop, topics=["t"], policy={"sustainSeconds": 5, "samplingInterval": 10})
    assert short["valid"]
    assert "two consecutive samples" in said(short)["policy.sustainSeconds"]


async def test_a_registration_warns_and_never_fails_because_the_broker_is_away(shop: Shop) -> None:
    await ready(shop, f"127.0.0.1:{free_port()}")
    put = await shop.monitor("orders")
    assert put.status_code == 201
    assert [warning["field"] for warning in put.json()["warnings"]] == ["cluster"]
    assert "not checked" in put.json()["warnings"][0]["text"]
    body = {"name": "others", "cluster": "main", "consumerGroup": "g", "topics": ["t"]}
    post = await shop.api.post(f"{shop.path}/monitors", json=body)
    assert post.status_code == 201
    assert len(post.json()["warnings"]) == 1
    assert (await shop.api.get(f"{shop.path}/monitors/orders")).json()["warnings"] == []
    quiet = await shop.api.put(f"{shop.path}/monitors/orders?validate=false", json=body | {"name": "orders"})
    assert quiet.json()["warnings"] == []


async def test_what_is_measured_already_is_judged_by_its_samples(shop: Shop, log: Log, shared_url: str) -> None:
    group = fresh("group")
    topic = log.topic(7, committed={group: 2})
    await ready(shop, log.address)
    await shop.monitor("first", consumerGroup=group, topics=[topic])
    # One partition was well first, so that it is known when its lag began.
    begun = [(300.0, [0, 0]), (290.0, [0, 0])]
    write(shared_url, shop.name, topic, [*begun, *((float(ago), [5000, 0]) for ago in range(280, -1, -10))])
    same = await validated(shop, consumerGroup=group, topics=[topic], policy={"lagThreshold": 500})
    assert (same["currentVerdict"]["verdict"], same["currentVerdict"]["fromSamples"]) == ("sustained", True)
    assert topic in same["currentVerdict"]["sentence"]
    # Another policy on the same samples.
    higher = await validated(shop, consumerGroup=group, topics=[topic], policy={"lagThreshold": 9000})
    assert higher["currentVerdict"]["verdict"] == "calm"
    # Samples of another isolation level are other samples.
    other = await validated(shop, consumerGroup=group, topics=[topic], policy={"isolationLevel": "read_committed"})
    assert not other["currentVerdict"]["fromSamples"]


async def test_anothers_cluster_is_answered_like_one_of_none(shop: Shop, other: Shop, log: Log) -> None:
    body = {"bootstrapServers": [log.address]}
    await other.api.put(f"{other.path}/clusters/theirs?preflight=false", json=body)
    theirs = await shop.api.post(
        f"{shop.path}/monitors/validate", json={"cluster": "theirs", "consumerGroup": "g", "topics": ["t"]}
    )
    nobodys = await shop.api.post(
        f"{shop.path}/monitors/validate", json={"cluster": "nobodys", "consumerGroup": "g", "topics": ["t"]}
    )
    assert theirs.content == nobodys.content
    key = await shop.key("tenant-admin")
    answers: list[httpx.Response] = [
        await shop.api.post(f"{path}/monitors/validate", json={"cluster": "main", "consumerGroup": "g"}, headers=key)
        for path in (other.path, f"/v1/tenants/{fresh('none')}")
    ]
    assert {answer.status_code for answer in answers} == {404}
    assert answers[0].content == answers[1].content
