"""Rows from source to sink: one for each target and each cluster of a tick.

Lies here and not in `spark/`, because the background poller writes the same rows without Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from lagscale.domain.lag.samples import Offsets
from services.scraper.polling.poll import ClusterPollResult, TargetPollResult
from services.scraper.polling.round import PolledRound, PollProblem

Row = dict[str, Any]

#: `kind` of a row.
CLUSTER, TARGET = 0, 1
#: Column -> its type in Spark. The only declaration: Spark's schema and Arrow's are built from it, and must agree.
COLUMNS: Final[Mapping[str, str]] = {
    "epoch": "bigint", "planned_ms": "bigint", "kind": "tinyint",
    "id": "int", "tenant_id": "int", "cluster_id": "int", "code": "string", "message": "string", "partitions": "int",
    "unstable": "string",
    "at_ms": "bigint", "topic_id": "string", "interval_ms": "int", "stale_after_ms": "int", "limitation": "string",
    "starts": "array<bigint>", "ends": "array<bigint>", "committed": "array<bigint>", "highs": "array<bigint>",
    "members": "int", "group_state": "smallint", "ends_asked_ms": "int", "ends_answered_ms": "int",
}  # fmt: skip
_ARROW_TYPES: Final = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "smallint": pa.int16(),
    "tinyint": pa.int8(),
    "string": pa.string(),
    "array<bigint>": pa.list_(pa.field("element", pa.int64())),
}
SPARK_SCHEMA: Final = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
ARROW_SCHEMA: Final = pa.schema([(name, _ARROW_TYPES[kind]) for name, kind in COLUMNS.items()])
#: A partition that could not be read has no start; one without a commit has this.
_NO_COMMIT = -1
_ROWS_PER_BATCH = 2000
#: Fields of a round that are columns of the same name.
_ROUND_COLUMNS: Final = (
    "at_ms", "topic_id", "interval_ms", "stale_after_ms", "limitation", "members", "group_state", "ends_asked_ms",
    "ends_answered_ms",
)  # fmt: skip


def build_rows(results: Iterable[ClusterPollResult], epoch: int, planned_ms: int) -> list[Row]:
    """The results of a poll under the lease's epoch; a column without a value is absent."""
    common = {"epoch": epoch, "planned_ms": planned_ms}
    rows: list[Row] = []
    for result in results:
        of_cluster = common | {"cluster_id": result.cluster_id}
        rows.append(of_cluster | _build_state(CLUSTER, result.cluster_id, result.tenant_id, result.problem))
        rows.extend(of_cluster | _build_target_row(target) for target in result.targets)
    return rows


def build_batches(rows: Sequence[Row]) -> Iterator[pa.RecordBatch]:
    """The rows as Arrow."""
    for begin in range(0, len(rows), _ROWS_PER_BATCH):
        yield pa.RecordBatch.from_pylist(rows[begin : begin + _ROWS_PER_BATCH], schema=ARROW_SCHEMA)


def _build_state(kind: int, number: int, tenant_id: int, problem: PollProblem) -> Row:
    return {"kind": kind, "id": number, "tenant_id": tenant_id, "code": problem.code.value, "message": problem.message}


def _build_target_row(result: TargetPollResult) -> Row:
    target, polled = result.target, result.polled
    row = _build_state(TARGET, target.target_id, target.tenant_id, result.problem) | {
        "partitions": result.partitions,
        "unstable": None if result.unstable is None else json.dumps(result.unstable),
    }
    if polled is None:
        return row
    row |= {name: getattr(polled, name) for name in _ROUND_COLUMNS}
    return row | {
        "starts": [None if o is None else o.start for o in polled.offsets],
        "ends": [None if o is None else o.end for o in polled.offsets],
        "committed": [
            None if o is None else _NO_COMMIT if o.committed is None else o.committed for o in polled.offsets
        ],
        "highs": [None if o is None else o.high for o in polled.offsets],
    }


def read_polled(row: Row) -> PolledRound | None:
    """The round in a row; None if there is none."""
    if row.get("at_ms") is None:
        return None
    offsets = _read_offsets(row["starts"], row["ends"], row["committed"], row["highs"])
    return PolledRound(offsets=offsets, **{name: row[name] for name in _ROUND_COLUMNS})


def _read_offsets(
    starts: Sequence[int | None], ends: Sequence[int], committed: Sequence[int], highs: Sequence[int]
) -> tuple[Offsets | None, ...]:
    return tuple(
        [
            None if start is None else Offsets(start, end, None if commit == _NO_COMMIT else commit, high)
            for start, end, commit, high in zip(starts, ends, committed, highs, strict=True)
        ]
    )
