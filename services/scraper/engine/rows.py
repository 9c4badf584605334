"""What travels from source to sink: one Arrow row for each target and each cluster of a tick.

`SCHEMA` is Spark's, `ARROW` the same for Arrow; both sides must agree exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from lagscale.domain.lag.samples import Offsets
from services.scraper.polling.poll import ClusterPollResult, TargetPollResult
from services.scraper.polling.round import PolledRound

#: `kind`: what a row tells of.
CLUSTER, TARGET = 0, 1
SCHEMA = (
    "epoch bigint, planned_ms bigint, kind tinyint, id int, tenant_id int, cluster_id int, code string, message string, at_ms bigint, topic_id string, "
    "interval_ms int, stale_after_ms int, limitation string, starts array<bigint>, ends array<bigint>, "
    "committed array<bigint>, highs array<bigint>, members int, group_state smallint, ends_asked_ms int, "
    "ends_answered_ms int, partitions int"
)
_LONGS = pa.list_(pa.field("element", pa.int64()))
ARROW = pa.schema(
    [
        ("epoch", pa.int64()), ("planned_ms", pa.int64()), ("kind", pa.int8()), ("id", pa.int32()), ("tenant_id", pa.int32()), ("cluster_id", pa.int32()),
        ("code", pa.string()), ("message", pa.string()), ("at_ms", pa.int64()), ("topic_id", pa.string()),
        ("interval_ms", pa.int32()), ("stale_after_ms", pa.int32()), ("limitation", pa.string()),
        ("starts", _LONGS), ("ends", _LONGS), ("committed", _LONGS), ("highs", _LONGS),
        ("members", pa.int32()), ("group_state", pa.int16()), ("ends_asked_ms", pa.int32()),
        ("ends_answered_ms", pa.int32()), ("partitions", pa.int32()),
    ]
)  # fmt: skip
COLUMNS = tuple(ARROW.names)
#: A partition that could not be read has no start; one without a commit has this.
_NO_COMMIT = -1
_ROWS_A_BATCH = 2000


def build_batches(answers: Iterable[ClusterPollResult], epoch: int, planned_ms: int) -> Iterator[pa.RecordBatch]:
    """The answers as Arrow, under the lease's epoch."""
    rows: list[tuple[Any, ...]] = []
    for answer in answers:
        problem = answer.problem
        rows.append(
            (
                epoch,
                planned_ms,
                CLUSTER,
                answer.cluster_id,
                answer.tenant_id,
                answer.cluster_id,
                problem.code.value,
                problem.message,
            )
            + (None,) * 14
        )
        rows.extend(_build_target_row(target, answer.cluster_id, epoch, planned_ms) for target in answer.targets)
    for begin in range(0, len(rows), _ROWS_A_BATCH):
        columns = zip(*rows[begin : begin + _ROWS_A_BATCH], strict=True)
        arrays = [pa.array(column, type=field.type) for column, field in zip(columns, ARROW, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=ARROW)


def _build_target_row(answer: TargetPollResult, cluster_id: int, epoch: int, planned_ms: int) -> tuple[Any, ...]:
    target, polled = answer.target, answer.polled
    head = (
        epoch, planned_ms, TARGET, target.target_id, target.tenant_id, cluster_id, answer.problem.code.value,
        answer.problem.message,
    )  # fmt: skip
    if polled is None:
        return (*head, *(None,) * 13, answer.partitions)
    return (
        *head,
        polled.at_ms,
        polled.topic_id,
        polled.interval_ms,
        polled.stale_after_ms,
        polled.limitation,
        [None if o is None else o.start for o in polled.offsets],
        [None if o is None else o.end for o in polled.offsets],
        [None if o is None else _NO_COMMIT if o.committed is None else o.committed for o in polled.offsets],
        [None if o is None else o.high for o in polled.offsets],
        polled.members,
        polled.group_state,
        polled.ends_asked_ms,
        polled.ends_answered_ms,
        answer.partitions,
    )


def read_polled(row: dict[str, Any]) -> PolledRound | None:
    """The round in a row; None where there was none."""
    if row["at_ms"] is None:
        return None
    return PolledRound(
        row["at_ms"],
        row["topic_id"],
        _read_offsets(row["starts"], row["ends"], row["committed"], row["highs"]),
        row["interval_ms"],
        row["stale_after_ms"],
        row["limitation"],
        row["members"],
        row["group_state"],
        row["ends_asked_ms"],
        row["ends_answered_ms"],
    )


def _read_offsets(
    starts: Sequence[int | None], ends: Sequence[int], committed: Sequence[int], highs: Sequence[int]
) -> tuple[Offsets | None, ...]:
    return tuple(
        [
            None if start is None else Offsets(start, end, None if commit == _NO_COMMIT else commit, high)
            for start, end, commit, high in zip(starts, ends, committed, highs, strict=True)
        ]
    )
