"""A registered world for the scraper, and ticks of it without Spark: plan, poll and write as the workers do."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from psycopg.types.json import Jsonb

from devstack.broker import Broker
from devstack.server import wait_until
from lagscale.store.connection import ScraperDatabase
from lagscale.store.encryption import Keyring, generate_key
from lagscale.store.scraping import leases, targets
from services.scraper.engine import worker
from services.scraper.kafka.cluster import KafkaCluster
from services.scraper.planning.planner import PollPlanner
from services.scraper.spark.datasource import SampleWriter
from services.scraper.worker_reports import BatchPart
from tests.support.engine_options import build_options

TICK_MS = 2000


class World:
    """One tenant in a fresh database, and a scraper whose ticks are called by the test."""

    def __init__(self, url: str, broker: Broker) -> None:
        self.url = url
        self.broker = broker
        self.admin = AdminClient({"bootstrap.servers": broker.address})
        self.key = generate_key()
        self.options = build_options(url, f"test-{uuid.uuid4().hex}", TICK_MS, secret_keys=self.key)
        self.database = ScraperDatabase(url)
        self.planner = PollPlanner(TICK_MS, 2, self.options.tenant_partitions)
        self.at_ms = 0.0
        self._owner = psycopg.connect(url, autocommit=True)
        self.tenant = self.ask("insert into tenant (name) values ('acme') returning id")[0][0]

    def close(self) -> None:
        self._owner.close()
        self.database.close()
        # Clients end before their broker does.
        worker.close_resources(self.options)

    def ask(self, statement: str, *parameters: object) -> list[Any]:
        cursor = self._owner.execute(statement, parameters)
        return list(cursor.fetchall()) if cursor.description else []

    def cluster(
        self,
        address: str | None = None,
        security: Mapping[str, object] | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> int:
        encrypted = None if secrets is None else Keyring(self.key).encrypt(secrets)
        return int(
            self.ask(
                "insert into cluster (tenant_id, name, bootstrap, security, secrets) values (%s, %s, %s, %s, %s) returning id",
                self.tenant,
                f"c-{uuid.uuid4().hex[:8]}",
                [address or self.broker.address],
                Jsonb(dict(security or {"protocol": "PLAINTEXT"})),
                encrypted,
            )[0][0]
        )

    def monitor(
        self,
        cluster: int,
        group: str,
        *topics: str,
        isolation: str = "read_uncommitted",
        limitation: str = "",
        sampling_ms: int = TICK_MS,
        stale_after_ms: int = 30_000,
    ) -> list[int]:
        """Register a monitor; the ids of its targets."""
        monitor = self.ask(
            "insert into monitor (tenant_id, name, cluster_id, consumer_group, topics, policy, sampling_ms, stale_after_ms, "
            "content_hash) values (%s, %s, %s, %s, %s, '{}', %s, %s, '') returning id",
            *(self.tenant, f"m-{uuid.uuid4().hex[:8]}", cluster, group, list(topics), sampling_ms, stale_after_ms),
        )[0][0]
        found = []
        for topic in topics:
            target = self.ask(
                "insert into lag_target (tenant_id, cluster_id, consumer_group, topic, isolation_level, "
                "partition_limitation) values (%s, %s, %s, %s, %s, %s) returning id",
                *(self.tenant, cluster, group, topic, isolation, limitation),
            )[0][0]
            self.ask("insert into monitor_target values (%s, %s, %s)", monitor, target, self.tenant)
            found.append(target)
        return found

    def tick(self) -> list[BatchPart]:
        """One tick as Spark would run it: lease, plan, poll and write of each slot."""
        lease = leases.acquire(self.database, self.options.holder, 30)
        assert lease is not None
        polling = targets.read_inventory(self.database)
        at_ms, _ = self.database.now_ms()
        # Planned on a clock that always moves by a tick, so that no test waits for one.
        self.at_ms = max(at_ms, self.at_ms + TICK_MS)
        slots = self.planner.plan(polling, targets.failed_clusters(self.database), self.at_ms)
        parts = []
        for slot in slots:
            batches: list[pa.RecordBatch] = list(worker.run_task(self.options, slot, lease.epoch, at_ms))
            parts.append(SampleWriter(self.options).write(iter(batches)).part)
        return parts

    def rows(self, target: int) -> list[dict[str, Any]]:
        """The target's rows, the newest first."""
        with psycopg.connect(self.url, row_factory=psycopg.rows.dict_row) as connection:
            return connection.execute(
                "select * from every_lag_sample where target_id = %s order by ts desc", [target]
            ).fetchall()

    def state(self, target: int) -> str:
        return str(self.ask("select code from target_state where target_id = %s", target)[0][0])

    def message(self, target: int) -> str:
        return str(self.ask("select message from target_state where target_id = %s", target)[0][0])

    def cluster_state(self, cluster: int) -> str:
        return str(self.ask("select code from cluster_state where cluster_id = %s", cluster)[0][0])

    # The broker's side.

    def open(self) -> KafkaCluster:
        """A client of its own, not one of the workers'."""
        return KafkaCluster({"bootstrap.servers": self.broker.address})

    def soon(self) -> float:
        """A deadline for one request."""
        return time.monotonic() + 5

    def topic(self, partitions: int = 1, name: str | None = None) -> str:
        name = name or f"t-{uuid.uuid4().hex[:10]}"
        self.admin.create_topics([NewTopic(name, partitions, 1)])[name].result(20)
        return name

    def drop_topic(self, name: str) -> None:
        self.admin.delete_topics([name])[name].result(20)
        wait_until(lambda: name not in self.admin.list_topics(timeout=5).topics, 20, "the topic vanished")

    def produce(self, topic: str, count: int, partition: int = 0) -> None:
        producer = Producer({"bootstrap.servers": self.broker.address, "linger.ms": 0})
        for _ in range(count):
            producer.produce(topic, b"x", partition=partition)
        assert producer.flush(20) == 0

    def commit(self, group: str, topic: str, *offsets: int | None) -> None:
        """Set the commits of partitions 0, 1, ...; the group has no members."""
        commits = [TopicPartition(topic, n, offset) for n, offset in enumerate(offsets) if offset is not None]
        request = ConsumerGroupTopicPartitions(group, commits)

        def taken() -> bool:
            # A broker that has no coordinator yet refuses by the partitions' errors only.
            answer = self.admin.alter_consumer_group_offsets([request])[group].result(20)
            return all(partition.error is None for partition in answer.topic_partitions)

        wait_until(taken, 20, "the commits were taken")

    def consumer(self, group: str, topics: Sequence[str], **settings: object) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.address,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **settings,
            }
        )
        consumer.subscribe(list(topics))
        return consumer


@pytest.fixture
def world(migrated_url: str, broker: Broker) -> Iterator[World]:
    made = World(migrated_url, broker)
    yield made
    made.close()


@pytest.fixture
def make_world(migrated_url: str) -> Iterator[Callable[[Broker], World]]:
    """A world on a broker of one's own."""
    worlds: list[World] = []

    def make(broker: Broker) -> World:
        worlds.append(World(migrated_url, broker))
        return worlds[-1]

    yield make
    for world in worlds:
        world.close()
