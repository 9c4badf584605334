"""Looking at real clusters: each step of each address, each right with what to grant, and warnings at registration."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from devstack.broker import Broker
from devstack.certificates import Certificates
from devstack.server import free_port, wait_until
from lagscale.kafka.addresses import ANY_ADDRESS, AddressRules
from lagscale.kafka.probe.runner import ProbeRunner
from tests.integration.api.conftest import Shop, fresh

pytestmark = pytest.mark.integration
SASL = {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": Broker.GUEST}
KINDS = {"topic": ResourceType.TOPIC, "group": ResourceType.GROUP, "cluster": ResourceType.BROKER}
STEPS = ("resolved", "connected", "tls", "authenticated", "answered")


class Strict:
    """A broker that checks rights; the guest may do what is granted here."""

    def __init__(self, server: Broker) -> None:
        self.server = server
        self.admin = AdminClient({"bootstrap.servers": server.address})

    def change(self, permission: str, kind: str, name: str) -> None:
        binding = AclBinding(
            KINDS[kind],
            "kafka-cluster" if kind == "cluster" else name,
            ResourcePatternType.LITERAL,
            f"User:{Broker.GUEST}",
            "*",
            AclOperation.DESCRIBE,
            AclPermissionType[permission],
        )
        self.admin.create_acls([binding])[binding].result(10)

    def forget(self) -> None:
        anything = AclBindingFilter(
            ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
        )
        self.admin.delete_acls([anything])[anything].result(10)

    def topic(self) -> str:
        name = fresh("topic")
        self.admin.create_topics([NewTopic(name, 2, 1)])[name].result(20)
        return name

    def committed(self, group: str, topic: str, offset: int = 0) -> None:
        request = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, offset)])

        def taken() -> bool:
            answer = self.admin.alter_consumer_group_offsets([request])[group].result(20)
            return all(partition.error is None for partition in answer.topic_partitions)

        wait_until(taken, 20, "the commit was taken")

    def produce(self, topic: str, count: int) -> None:
        producer = Producer({"bootstrap.servers": self.server.address, "linger.ms": 0})
        for _ in range(count):
            producer.produce(topic, b"x", partition=0)
        assert producer.flush(20) == 0


@pytest.fixture(scope="module")
def strict() -> Iterator[Strict]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LAGSCALE_DEVSTACK_KAFKA_BOOTSTRAP", raising=False)
        server = Broker(listeners=2, sasl=True, tls=True, authorizer=True)
    with server:
        yield Strict(server)


@pytest.fixture
def probe_runner() -> tuple[AddressRules, ProbeRunner]:
    return ANY_ADDRESS, ProbeRunner(seconds=8)


async def cluster(shop: Shop, address: str | list[str], name: str = "main", **given: Any) -> httpx.Response:
    servers = [address] if isinstance(address, str) else address
    answer = await shop.api.put(f"{shop.path}/clusters/{name}", json={"bootstrapServers": servers, **given})
    assert answer.status_code in {200, 201}, answer.text
    return answer


async def preflight(shop: Shop, name: str = "main") -> dict[str, Any]:
    answer = await shop.api.post(f"{shop.path}/clusters/{name}/preflight")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def steps(address: dict[str, Any]) -> list[str]:
    return [address[name]["outcome"] for name in STEPS]


def access_checks(found: dict[str, Any]) -> dict[tuple[str, str], dict[str, str]]:
    return {(one["permission"], one["name"]): one for one in found["accessChecks"]}


async def test_a_good_cluster_is_ok_from_the_name_to_the_last_right(shop: Shop, strict: Strict) -> None:
    topic, group = strict.topic(), fresh("group")
    strict.committed(group, topic)
    made = await cluster(shop, strict.server.address)
    assert made.json()["warnings"] == []
    await shop.monitor("orders", consumerGroup=group, topics=[topic])
    found = await preflight(shop)
    assert found["ok"], found
    (address,) = found["addresses"]
    assert steps(address) == ["ok", "ok", "not_used", "not_used", "ok"]
    assert {(permission, one["name"]) for permission, one in ((r["permission"], r) for r in found["accessChecks"])} == {
        ("describe_cluster", ""),
        ("describe_topic", topic),
        ("list_offsets", topic),
        ("describe_group", group),
        ("read_commits", group),
    }
    assert {one["status"] for one in found["accessChecks"]} == {"granted"}
    assert found["version"] is not None
    assert tuple(map(int, found["version"].split("."))) >= (4, 0)
    assert {"classic", "consumer"} <= set(found["groupTypes"])
    assert found["seconds"] < 8


async def test_each_bootstrap_server_is_told_by_the_step_that_failed(shop: Shop, strict: Strict) -> None:
    silent = socket.create_server(("127.0.0.1", 0))
    mute = f"127.0.0.1:{silent.getsockname()[1]}"
    closed = f"127.0.0.1:{free_port()}"
    made = await cluster(shop, [strict.server.address, closed, "no-such-host.invalid:9092", mute])
    found = await preflight(shop)
    silent.close()
    assert [steps(address) for address in found["addresses"]] == [
        ["ok", "ok", "not_used", "not_used", "ok"],
        ["ok", "failed", "not_tried", "not_tried", "not_tried"],
        ["failed", "not_tried", "not_tried", "not_tried", "not_tried"],
        ["ok", "ok", "not_used", "not_used", "failed"],
    ]
    # One good server is enough to go on, and the others are warned of.
    assert found["problem"] == ""
    fields = [warning["field"] for warning in made.json()["warnings"]]
    assert fields == ["bootstrapServers.1", "bootstrapServers.2", "bootstrapServers.3"]
    assert closed in made.json()["warnings"][0]["text"]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
async def test_a_wrong_password_is_named_soon_and_is_in_no_answer(shop: Shop, strict: Strict, mechanism: str) -> None:
    began = time.monotonic()
    made = await cluster(
        shop,
        strict.server.sasl_address,
        security={"protocol": "SASL_PLAINTEXT", "mechanism": mechanism, "username": Broker.USER},
        secrets={"password": "canary-of-a-password"},
    )
    assert time.monotonic() - began < 8
    found = await preflight(shop)
    assert found["problem"] == "authentication_failed"
    assert steps(found["addresses"][0]) == ["ok", "ok", "not_used", "failed", "not_tried"]
    assert found["accessChecks"] == []
    (warning,) = made.json()["warnings"]
    assert "user name and password" in warning["text"]
    assert "canary" not in made.text + json.dumps(found)


async def test_a_mechanism_that_the_listener_does_not_offer_is_told_with_those_it_does(
    shop: Shop, strict: Strict
) -> None:
    security = SASL | {"protocol": "SASL_PLAINTEXT"}
    await cluster(shop, strict.server.address, security=security, secrets={"password": Broker.PASSWORD})
    found = await preflight(shop)
    assert steps(found["addresses"][0]) == ["ok", "ok", "not_used", "failed", "not_tried"]
    assert "does not use SASL" in found["text"]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [("ca", "`ca` did not sign it"), ("client", "`certificate` and `key`"), ("none", "`certificate` and `key`")],
)
async def test_a_failed_handshake_says_whose_certificate_is_refused(
    shop: Shop, strict: Strict, tmp_path: Path, wrong: str, says: str
) -> None:
    mine, other = strict.server.certificates, Certificates.make(tmp_path)
    assert mine is not None
    pair = other.client if wrong == "client" else mine.client
    security = {"protocol": "SSL", "ca": (other if wrong == "ca" else mine).authority}
    secrets = {}
    if wrong != "none":
        security["certificate"], secrets["key"] = pair.certificate, pair.key
    made = await cluster(shop, strict.server.tls_address, security=security, secrets=secrets)
    found = await preflight(shop)
    assert found["problem"] == "tls_failed"
    assert steps(found["addresses"][0]) == ["ok", "ok", "failed", "not_used", "not_tried"]
    assert says in found["text"]
    assert "PRIVATE KEY" not in made.text + json.dumps(found)


async def test_a_client_certificate_is_let_in_under_its_subject(shop: Shop, strict: Strict) -> None:
    mine = strict.server.certificates
    assert mine is not None
    security = {"protocol": "SSL", "ca": mine.authority, "certificate": mine.client.certificate}
    await cluster(shop, strict.server.tls_address, security=security, secrets={"key": mine.client.key})
    found = await preflight(shop)
    assert steps(found["addresses"][0]) == ["ok", "ok", "ok", "not_used", "ok"]
    assert "User:CN=lagscale" in access_checks(found)["describe_cluster", ""]["grant"]


async def test_tls_to_a_plain_listener_and_plain_to_a_tls_one_are_told_apart(shop: Shop, strict: Strict) -> None:
    mine = strict.server.certificates
    assert mine is not None
    await cluster(shop, strict.server.address, "tls-to-plain", security={"protocol": "SSL", "ca": mine.authority})
    await cluster(shop, strict.server.tls_address, "plain-to-tls")
    assert "does not use TLS" in (await preflight(shop, "tls-to-plain"))["text"]
    found = await preflight(shop, "plain-to-tls")
    assert found["problem"] == "tls_failed"
    assert found["text"] == "The listener uses TLS: set tls to enable (security protocol SSL, or SASL_SSL with SASL)."
    assert steps(found["addresses"][0]) == ["ok", "ok", "failed", "not_used", "not_tried"]


async def test_sasl_without_tls_at_a_tls_listener_and_none_at_a_sasl_one(shop: Shop, strict: Strict) -> None:
    security = {"sasl": "plaintext", "username": Broker.USER}
    secrets = {"password": Broker.PASSWORD}
    await cluster(shop, strict.server.tls_address, "sasl-to-tls", security=security, secrets=secrets)
    assert "set tls to enable" in (await preflight(shop, "sasl-to-tls"))["text"]
    await cluster(shop, strict.server.sasl_address, "nothing-to-sasl")
    assert "set sasl and its credentials" in (await preflight(shop, "nothing-to-sasl"))["text"]


EVERY_RIGHT = {
    "describe_cluster": "cluster",
    "describe_topic": "topic",
    "list_offsets": "topic",
    "describe_group": "group",
    "read_commits": "group",
}


@pytest.mark.parametrize("denied", ["cluster", "topic", "group"])
async def test_each_right_that_is_missing_is_named_with_what_grants_it(shop: Shop, strict: Strict, denied: str) -> None:
    topic, group = strict.topic(), fresh("group")
    strict.committed(group, topic)
    names = {"topic": topic, "group": group, "cluster": ""}
    await cluster(shop, strict.server.sasl_address, security=SASL, secrets={"password": Broker.PASSWORD})
    await shop.monitor("orders", consumerGroup=group, topics=[topic])
    strict.forget()
    for kind, name in names.items():
        if kind != denied:
            strict.change("ALLOW", kind, name)
    found = await preflight(shop)
    assert found["problem"] == ""
    assert not found["ok"]
    held = {one["permission"]: one for one in found["accessChecks"]}
    missing = {permission for permission, kind in EVERY_RIGHT.items() if kind == denied}
    assert {permission for permission, one in held.items() if one["status"] == "denied"} == missing
    assert {permission for permission, one in held.items() if one["status"] == "granted"} == set(EVERY_RIGHT) - missing
    for permission in missing:
        argv = shlex.split(held[permission]["grant"])
        assert argv[0] == "kafka-acls"
        assert argv[argv.index("--allow-principal") + 1] == f"User:{Broker.GUEST}"
        assert argv[argv.index("--operation") + 1] == "Describe"
        assert argv[-1] == (names[denied] or "--cluster")
    assert {warning["field"] for warning in found["warnings"]} == {"accessChecks"}
    # What it says to grant, and nothing else, makes it good.
    strict.change("ALLOW", denied, names[denied])
    assert (await preflight(shop))["ok"]


async def test_looks_are_counted_by_how_they_ended(shop: Shop, strict: Strict) -> None:
    def counted(text: str, outcome: str) -> float:
        found = re.search(rf'lagscale_api_preflights_total{{outcome="{outcome}"}} (\S+)', text)
        return 0.0 if found is None else float(found[1])

    before = (await shop.api.get("/metrics")).text
    await cluster(shop, strict.server.address, "good")
    await cluster(shop, f"127.0.0.1:{free_port()}", "away")
    after = (await shop.api.get("/metrics")).text
    assert [counted(after, kind) - counted(before, kind) for kind in ("ok", "unreachable")] == [1, 1]


async def test_a_topic_that_is_absent_is_no_missing_right(shop: Shop, strict: Strict) -> None:
    await cluster(shop, strict.server.address)
    await shop.monitor("orders", consumerGroup=fresh("group"), topics=["not-there"])
    found = await preflight(shop)
    assert access_checks(found)["describe_topic", "not-there"]["status"] == "granted"
    assert access_checks(found)["list_offsets", "not-there"]["status"] == "unknown"
    assert "Topic not found" in access_checks(found)["list_offsets", "not-there"]["text"]
    assert not found["ok"]
    assert "Permission list_offsets on the topic not-there is not known: Topic not found." in [
        warning["text"] for warning in found["warnings"]
    ]


async def test_a_registration_never_fails_because_the_broker_is_away(shop: Shop) -> None:
    made = await cluster(shop, f"127.0.0.1:{free_port()}", "away")
    assert made.status_code == 201
    assert [warning["field"] for warning in made.json()["warnings"]] == ["bootstrapServers.0"]
    assert (await shop.api.get(f"{shop.path}/clusters/away")).json()["warnings"] == []
    again = await shop.api.put(
        f"{shop.path}/clusters/away?preflight=false", json={"bootstrapServers": [f"127.0.0.1:{free_port()}"]}
    )
    assert again.json()["warnings"] == []
    posted = await shop.api.post(
        f"{shop.path}/clusters", json={"name": "posted", "bootstrapServers": [f"127.0.0.1:{free_port()}"]}
    )
    assert posted.status_code == 201
    assert len(posted.json()["warnings"]) == 1


async def test_a_preflight_of_anothers_cluster_is_answered_like_one_of_none(
    shop: Shop, other: Shop, strict: Strict
) -> None:
    await cluster(other, strict.server.address, "theirs")
    key = await shop.key("tenant-admin")
    foreign = await shop.api.post(f"{other.path}/clusters/theirs/preflight", headers=key)
    missing = await shop.api.post(f"/v1/tenants/{fresh('none')}/clusters/theirs/preflight", headers=key)
    absent = await shop.api.post(f"{shop.path}/clusters/theirs/preflight", headers=key)
    assert foreign.status_code == missing.status_code == absent.status_code == 404
    assert foreign.content == missing.content == absent.content
    viewer = await shop.key("tenant-viewer")
    assert (await shop.api.post(f"{shop.path}/clusters/main/preflight", headers=viewer)).status_code == 403


async def test_a_cluster_is_looked_at_once_at_a_time(shop: Shop, strict: Strict) -> None:
    silent = socket.create_server(("127.0.0.1", 0))
    address = f"127.0.0.1:{silent.getsockname()[1]}"
    body = {"bootstrapServers": [address]}
    await shop.api.put(f"{shop.path}/clusters/slow?preflight=false", json=body)
    path = f"{shop.path}/clusters/slow/preflight"
    first, second = await asyncio.gather(shop.api.post(path), shop.api.post(path))
    silent.close()
    refused = next(answer for answer in (first, second) if answer.status_code == 409)
    done = next(answer for answer in (first, second) if answer.status_code == 200)
    assert refused.json()["type"].endswith(":preflight-running")
    assert refused.json()["title"] == "A preflight of this cluster is already running."
    assert "already running" in refused.json()["detail"]
    assert done.json()["problem"] in {"timeout", "unreachable"}


async def test_a_silent_cluster_is_given_up_in_time(shop: Shop) -> None:
    silent = socket.create_server(("127.0.0.1", 0))
    await cluster(shop, f"127.0.0.1:{silent.getsockname()[1]}", "silent")
    found = await preflight(shop, "silent")
    silent.close()
    assert not found["ok"]
    assert found["seconds"] <= 8.5


async def test_a_secret_that_cannot_be_decrypted_warns_and_is_named(shop: Shop, shared_url: str) -> None:
    await shop.api.put(
        f"{shop.path}/clusters/sealed?preflight=false",
        json={
            "bootstrapServers": ["127.0.0.1:1"],
            "security": {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": "u"},
            "secrets": {"password": "x"},
        },
    )
    with psycopg.connect(shared_url, autocommit=True) as owner:
        owner.execute("update cluster set secrets = 'garbage' where name = 'sealed'")
    answer = await shop.api.post(f"{shop.path}/clusters/sealed/preflight")
    assert answer.status_code == 500
    assert answer.json()["type"].endswith("secrets-unreadable")
