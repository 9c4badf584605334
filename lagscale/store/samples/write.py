"""Stores the scraper's samples by COPY under the lease, and reads the newest rows back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row

from lagscale.domain.lag.rounds import SampleRow
from lagscale.store.connection import ScraperDatabase
from lagscale.store.queries import load, to_arrays
from lagscale.store.samples.columns import COLUMNS, format_copy_line, read_row
from lagscale.store.scraping.leases import Lease, lock_lease

#: COPY into a table with row-level security is refused, so rows go through a table of this session. It is made from
#: the view, because the service may not read the samples themselves.
_STAGE = (
    "create temporary table if not exists scraped on commit delete rows as select * from every_lag_sample with no data"
)
_COPY = f"copy pg_temp.scraped ({', '.join(COLUMNS)}) from stdin"
#: For statements that remove many rows; their connection's response time-out must be longer.
REMOVAL_SECONDS = 60.0
_REMOVAL_TIMEOUT = f"set local statement_timeout = '{REMOVAL_SECONDS:.0f}s'"
_WRITE_CHARACTERS = 1 << 18
_TOPIC_ID_ARRAYS = {"targets": "target_id", "topic_ids": "topic_id", "epochs": "incarnation"}


@dataclass(frozen=True, slots=True)
class TargetBaseline:
    """A target before its next round: its topic's id and incarnation, and its newest row."""

    topic_id: str | None
    incarnation: int
    row: SampleRow | None


@dataclass(frozen=True, slots=True)
class TopicIncarnation:
    """A topic's id as the cluster just answered it, and the incarnation that it stands for."""

    target_id: int
    topic_id: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class AppendResult:
    """The outcome of appending a batch of rows."""

    stored: int
    duplicates: int
    refused: int  # stamped more than 1 s in the database's future


class PostgresSamples:
    """Samples in PostgreSQL. The statements serve all tenants; the role's policies allow just that.

    Every method raises `StoreUnavailable` if the store does not answer; nothing was written then.
    """

    def __init__(self, database: ScraperDatabase) -> None:
        self._database = database

    def read_baselines(self, target_ids: Sequence[int]) -> dict[int, TargetBaseline]:
        """The baseline of each target that still exists."""
        with self._database.transaction() as connection, connection.cursor(row_factory=dict_row) as cursor:
            found = cursor.execute(load("scrape_newest"), {"targets": list(target_ids)}, prepare=True).fetchall()
        rows = {columns["id"]: None if columns["at_ms"] is None else read_row(columns) for columns in found}
        return {
            columns["id"]: TargetBaseline(columns["topic_id"], columns["target_epoch"], rows[columns["id"]])
            for columns in found
        }

    def newest(self, target_ids: Sequence[int]) -> dict[int, SampleRow]:
        """The newest row of each target that has one."""
        baselines = self.read_baselines(target_ids)
        return {target: baseline.row for target, baseline in baselines.items() if baseline.row is not None}

    def append(
        self, rows: Sequence[tuple[int, int, SampleRow]], lease: Lease, topic_ids: Sequence[TopicIncarnation] = ()
    ) -> AppendResult:
        """Store (tenant id, target id, row) and the topics' ids in one transaction that checks the lease.

        Raises:
            LeaseLost: another scraper leads; nothing was written.
        """
        if not rows:
            return AppendResult(0, 0, 0)
        with self._database.transaction() as connection:
            connection.execute(_STAGE)
            _copy(connection, rows)
            # Locked after the rows are sent: a writer that stops while it sends them blocks no successor.
            lock_lease(connection, lease)
            (future,) = connection.execute(load("scrape_future")).fetchone() or (0,)
            stored = connection.execute(load("scrape_insert")).rowcount
            if topic_ids:
                connection.execute(load("scrape_topic_ids"), to_arrays(topic_ids, **_TOPIC_ID_ARRAYS))
        return AppendResult(stored, len(rows) - stored - future, future)

    def notify(self) -> None:
        """Notify the scalers of new rows; a transaction of its own, because NOTIFY takes one lock for all. Listeners poll
        anyway.
        """
        with self._database.transaction() as connection:
            connection.execute("notify lagscale_samples")

    def drop_older_than(self, hours: float) -> list[str]:
        """Drop samples older than so many hours by the database's clock; the names of chunks, or a count of rows."""
        with self._database.transaction() as connection:
            connection.execute(_REMOVAL_TIMEOUT)
            found = connection.execute(
                "select dropped from drop_samples_before(clock_timestamp() - %s::float8 * interval '1 hour')", [hours]
            ).fetchall()
        return [str(row[0]) for row in found]

    def remove_unused(self) -> dict[str, int]:
        """Remove expired rows of the registry; kind -> how many rows, where there were any."""
        with self._database.transaction() as connection:
            connection.execute(_REMOVAL_TIMEOUT)
            found = connection.execute("select what, removed from tidy_registry(clock_timestamp())").fetchall()
        return {what: removed for what, removed in found if removed}

    def is_chunked(self) -> bool:
        """Whether TimescaleDB stores the samples in chunks; on plain PostgreSQL retention deletes row by row."""
        with self._database.transaction() as connection:
            return bool(connection.execute("select from pg_extension where extname = 'timescaledb'").rowcount)


def _copy(connection: Connection[Any], rows: Sequence[tuple[int, int, SampleRow]]) -> None:
    with connection.cursor().copy(_COPY) as copy:
        lines: list[str] = []
        size = 0
        for tenant_id, target_id, row in rows:
            line = format_copy_line(tenant_id, target_id, row)
            lines.append(line)
            size += len(line)
            if size > _WRITE_CHARACTERS:
                copy.write("".join(lines))
                lines, size = [], 0
        copy.write("".join(lines))
