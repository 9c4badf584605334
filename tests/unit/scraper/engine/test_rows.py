"""Rows: what the poll found arrives at the sink, in a schema that Spark and Arrow agree on."""

from __future__ import annotations

from pyspark.sql.pandas.types import from_arrow_schema

from lagscale.domain.lag.samples import Offsets
from lagscale.domain.state_codes import StateCode
from lagscale.store.scraping.targets import TargetEntry
from services.scraper.engine.rows import (
    ARROW_SCHEMA,
    CLUSTER,
    COLUMNS,
    SPARK_SCHEMA,
    TARGET,
    build_batches,
    build_rows,
    read_polled,
)
from services.scraper.polling.poll import ClusterPollResult, TargetPollResult
from services.scraper.polling.round import PolledRound, PollProblem

ENTRY = TargetEntry(7, 1, 3, "orders", "topic", False, "", 1000, 30_000)
ROUND = PolledRound(
    1_700_000_000_000, "id", (Offsets(0, 10, 4, 11), None, Offsets(0, 5, None, 5)), 1000, 30_000, "0-2", 2, 3, 10, 20
)


def test_spark_and_arrow_have_the_same_columns_of_the_same_types() -> None:
    assert (
        ", ".join(f"{one.name} {one.dataType.simpleString()}" for one in from_arrow_schema(ARROW_SCHEMA))
        == SPARK_SCHEMA
    )


def test_rounds_and_states_arrive_as_they_were_polled() -> None:
    ok, failed = PollProblem(StateCode.OK), PollProblem(StateCode.NO_TOPIC, "detail")
    targets = (TargetPollResult(ENTRY, ROUND, ok, 3), TargetPollResult(ENTRY, None, failed))
    rows = build_rows([ClusterPollResult(3, 1, ok, targets)], epoch=5, planned_ms=9)
    arrived = [row for batch in build_batches(rows) for row in batch.to_pylist()]
    assert [set(row) for row in arrived] == [set(COLUMNS)] * 3
    assert [row["kind"] for row in arrived] == [CLUSTER, TARGET, TARGET]
    assert {(row["epoch"], row["planned_ms"], row["tenant_id"], row["cluster_id"]) for row in arrived} == {(5, 9, 1, 3)}
    # Written with and without Spark in between, a row means the same.
    for sent, received in zip(rows, arrived, strict=True):
        assert {name: received[name] for name in sent} == sent
        assert read_polled(sent) == read_polled(received)
    assert [read_polled(row) for row in arrived] == [None, ROUND, None]
    assert arrived[2]["message"] == failed.message
