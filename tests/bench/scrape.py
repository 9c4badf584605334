"""How long a round of many groups takes by the running scraper, from its first request to the commit of its rows.

`python -m tests.bench.scrape`: starts a broker, a database and one scraper; prints the median of the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path

import psycopg
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from devstack.broker import Broker
from devstack.database import Database
from devstack.server import wait_until
from devstack.stack import Stack

BAR_SECONDS = 4.0
#: A given broker keeps what an earlier run left on it.
_RUN = uuid.uuid4().hex[:6]
_TOGETHER = 100
_ATTEMPTS = 6
_MOST_SECONDS = 900.0


def main() -> int:
    """Run it; 0 when the median is within the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=5000)
    parser.add_argument("--topics", type=int, default=200)
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--tick", type=float, default=5.0, help="seconds")
    given = parser.parse_args()
    with Broker() as broker, Database() as database, tempfile.TemporaryDirectory() as folder:
        url = database.create_database("bench")
        stack = Stack(url, Path(folder), tick_seconds=given.tick)
        stack.migrate()
        print("groups and topics are created", flush=True)
        _fill(broker.address, given.groups, given.topics, given.partitions)
        _register(url, broker.address, given.groups, given.topics, round(given.tick * 1000))
        stack.spawn("scraper")
        try:
            seconds = _measure(url, given.groups, given.rounds)
        finally:
            stack.stop()
    median = statistics.median(seconds)
    print(
        f"{given.groups} groups x {given.partitions} partitions over {given.topics} topics: first request to commit, "
        f"median of {len(seconds)} rounds {median:.2f} s (least {min(seconds):.2f}, most {max(seconds):.2f}); "
        f"bar {BAR_SECONDS:g} s"
    )
    return 0 if median <= BAR_SECONDS else 1


def _fill(address: str, groups: int, topics: int, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([NewTopic(_topic(n), partitions, 1) for n in range(topics)]).values():
        future.result(130)
    for begin in range(0, groups, _TOGETHER):
        _commit(admin, range(begin, min(begin + _TOGETHER, groups)), topics, partitions)


def _commit(admin: AdminClient, numbers: Iterable[int], topics: int, partitions: int) -> None:
    """Commit for these groups. A broker that is just making its offsets topic may leave a request unanswered."""
    left = list(numbers)
    for _ in range(_ATTEMPTS):
        asked: dict[int, Future[object]] = {}
        for number in left:
            commits = [TopicPartition(_topic(number % topics), part, 0) for part in range(partitions)]
            groups = [ConsumerGroupTopicPartitions(_group(number), commits)]
            (asked[number],) = admin.alter_consumer_group_offsets(groups, request_timeout=20).values()
        left = [number for number, future in asked.items() if future.exception(30) is not None]
        if not left:
            return
    raise SystemExit(f"{len(left)} groups could not commit in {_ATTEMPTS} attempts")


def _register(url: str, address: str, groups: int, topics: int, sampling_ms: int) -> None:
    with psycopg.connect(url) as connection:
        tenant = _one(connection, "insert into tenant (name) values ('bench') returning id")
        cluster = _one(
            connection,
            "insert into cluster (tenant_id, name, bootstrap) values (%s, 'main', %s) returning id",
            *(tenant, [address]),
        )
        connection.execute(
            "insert into monitor (tenant_id, name, cluster_id, consumer_group, topics, policy, sampling_ms, "
            "stale_after_ms, content_hash) select %s, 'm-' || n, %s, %s || n, array[%s || n %% %s::int], '{}', "
            "%s, 60000, '' from generate_series(0, %s) n",
            (tenant, cluster, _group(""), _topic(""), topics, sampling_ms, groups - 1),
        )
        connection.execute(
            "insert into lag_target (tenant_id, cluster_id, consumer_group, topic, isolation_level) "
            "select tenant_id, cluster_id, consumer_group, topics[1], isolation_level from monitor"
        )
        connection.execute(
            "insert into monitor_target select m.id, t.id, m.tenant_id from monitor m "
            "join lag_target t using (consumer_group)"
        )


def _one(connection: psycopg.Connection, statement: str, *parameters: object) -> int:
    row = connection.execute(statement, parameters).fetchone()
    return 0 if row is None else int(row[0])


def _measure(url: str, groups: int, rounds: int) -> list[float]:
    """Seconds from a tick's first request until all its rows can be read, by polling the rows' number."""
    found: list[float] = []
    with psycopg.connect(url, autocommit=True) as connection:
        deadline = time.monotonic() + _MOST_SECONDS
        last = connection.execute("select coalesce(max(ts), 'epoch'::timestamptz) from every_lag_sample").fetchone()
        assert last is not None
        last_ts = last[0]
        while len(found) < rounds:
            wait_until(
                _complete(connection, last_ts, groups), max(deadline - time.monotonic(), 1), "a round was stored"
            )
            row = connection.execute(
                "select max(ts), extract(epoch from clock_timestamp() - min(ts)), count(*) "
                "from every_lag_sample where ts > %s",
                [last_ts],
            ).fetchone()
            assert row is not None
            last_ts = row[0]
            found.append(float(row[1]))
            print(f"round {len(found)}: {row[1]:.2f} s, {row[2]} rows", flush=True)
    return found


def _complete(connection: psycopg.Connection, last_ts: object, groups: int) -> Callable[[], bool]:
    def complete() -> bool:
        row = connection.execute("select count(*) from every_lag_sample where ts > %s", [last_ts]).fetchone()
        return row is not None and row[0] >= groups

    return complete


def _topic(number: int | str) -> str:
    return f"topic-{_RUN}-{number}"


def _group(number: int | str) -> str:
    return f"group-{_RUN}-{number}"


if __name__ == "__main__":
    raise SystemExit(main())
