"""A coordinator that is missing, or found too late, is an error of its group, and does not end the process."""

from __future__ import annotations

import subprocess
import sys

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from devstack.broker import Broker
from devstack.server import wait_until

pytestmark = pytest.mark.integration

#: In a process of its own: the library's crash would end the tests. The broker's first groups have no coordinator yet.
_ASK = """
import sys, time
from services.scraper.kafka.cluster import KafkaCluster
from services.scraper.polling.round import PollProblem

groups = {f"group-{number}": [("orders", 0)] for number in range(60)}
client = KafkaCluster({"bootstrap.servers": sys.argv[1]})
deadline = time.monotonic() + 60
refused = 0
while time.monotonic() < deadline:
    found = client.request_commits(groups, time.monotonic() + 5)()
    failed = [name for name, answer in found.items() if isinstance(answer, PollProblem)]
    refused += len(failed)
    if not failed:
        print("answered", len(found), "refused before" if refused else "at once")
        sys.exit(0)
    if client.needs_replacement:
        client = KafkaCluster({"bootstrap.servers": sys.argv[1]})
sys.exit(f"never answered: {failed[:3]}")
"""

#: Thousands of groups that are new each time, and far too short a time for them.
_HASTE = """
import sys, time
from services.scraper.kafka.cluster import KafkaCluster
from services.scraper.polling.round import PollProblem

client = KafkaCluster({"bootstrap.servers": sys.argv[1]})
answered = late = 0
for number in range(12):
    groups = {f"group-{number}-{one}": [("orders", 0)] for one in range(5000)}
    found = client.request_commits(groups, time.monotonic() + 0.3 + number % 4 / 10)()
    late += sum(isinstance(answer, PollProblem) for answer in found.values())
    answered += sum(not isinstance(answer, PollProblem) for answer in found.values())
print("ended", answered > 0, late > 0)
"""


#: Groups by a user who may not describe `__consumer_offsets`, until the broker has failed and all answer again.
_HIDDEN = """
import os, sys, time
from services.scraper.kafka.cluster import KafkaCluster
from services.scraper.polling.round import PollProblem

sasl = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": sys.argv[2]}
config = {"bootstrap.servers": sys.argv[1], "sasl.password": sys.argv[3], **sasl}
groups = {f"shop.g-{number}": [("shop.orders", 0)] for number in range(60)}
client = KafkaCluster(config)
offsets = client.describe_topics(["__consumer_offsets"], time.monotonic() + 5)["__consumer_offsets"]
assert isinstance(offsets, PollProblem), "the topic is not hidden"
deadline = time.monotonic() + 80
answered, failed_between, retired = 0, False, []
while time.monotonic() < deadline:
    found = client.request_commits(groups, time.monotonic() + 3)()
    if not any(isinstance(answer, PollProblem) for answer in found.values()):
        answered += 1
        if answered == 1:
            print("ready", flush=True)
            # No request for commits is under way when the broker fails: that crashes the library, whoever sends it.
            sys.stdin.readline()
        if failed_between:
            print(sorted(answer["shop.orders", 0] or 0 for answer in found.values()), flush=True)
            os._exit(0)
    else:
        failed_between = failed_between or answered > 0
    if client.needs_replacement or client.has_lost_connections:
        # A client with requests under way is not destroyed.
        retired.append(client)
        client = KafkaCluster(config)
sys.exit("never answered")
"""


def _run(script: str, broker: Broker) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, broker.address], capture_output=True, text=True, timeout=90, check=False
    )


@pytest.mark.timeout(120)
def test_groups_of_a_fresh_broker_are_refused_until_they_have_a_coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAGSCALE_DEVSTACK_KAFKA_BOOTSTRAP", raising=False)
    with Broker() as broker:
        done = _run(_ASK, broker)
    assert done.returncode == 0, f"{done.returncode}: {done.stdout} {done.stderr[-2000:]}"
    assert done.stdout.startswith("answered 60")


@pytest.mark.timeout(120)
def test_coordinators_that_are_found_too_late_end_no_process(broker: Broker) -> None:
    done = _run(_HASTE, broker)
    assert done.returncode == 0, f"{done.returncode}: {done.stdout} {done.stderr[-2000:]}"
    assert done.stdout == "ended True True\n"


@pytest.mark.timeout(150)
@pytest.mark.parametrize("partitions", [3, 100])
def test_groups_whose_offsets_topic_is_hidden_are_late_while_a_broker_restarts(
    monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    monkeypatch.delenv("LAGSCALE_DEVSTACK_KAFKA_BOOTSTRAP", raising=False)
    settings = {"offsets.topic.num.partitions": str(partitions)}
    with Broker(sasl=True, authorizer=True, settings=settings) as broker:
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.create_topics([NewTopic("shop.orders", 1, 1)])["shop.orders"].result(20)
        rights = [_grant(kind, Broker.GUEST) for kind in (ResourceType.TOPIC, ResourceType.GROUP)]
        for granted in admin.create_acls(rights).values():
            granted.result(20)
        # Half of the groups are seen for the first time.
        for number in range(30):
            _commit(admin, f"shop.g-{number}", "shop.orders", number + 1)
        command = [sys.executable, "-c", _HIDDEN, broker.sasl_address, Broker.GUEST, Broker.PASSWORD]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        with subprocess.Popen(command, text=True, **pipes) as asking:
            assert asking.stdout is not None
            assert asking.stdout.readline() == "ready\n"
            broker.kill()
            broker.spawn_without_waiting()
            output, errors = asking.communicate("go on\n", timeout=100)
    assert asking.returncode == 0, f"{asking.returncode}: {errors[-2000:]}"
    assert output == f"{[0] * 30 + list(range(1, 31))}\n"


def _grant(kind: ResourceType, user: str) -> AclBinding:
    prefixed = ResourcePatternType.PREFIXED
    return AclBinding(kind, "shop.", prefixed, f"User:{user}", "*", AclOperation.DESCRIBE, AclPermissionType.ALLOW)


def _commit(admin: AdminClient, group: str, topic: str, offset: int) -> None:
    request = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, offset)])

    def is_taken() -> bool:
        answer = admin.alter_consumer_group_offsets([request])[group].result(20)
        return all(partition.error is None for partition in answer.topic_partitions)

    wait_until(is_taken, 60, "the commit was taken")
