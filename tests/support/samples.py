"""Puts rows of samples into a database for tests and benchmarks, past the scraper's role and lease."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from psycopg import Connection

from lagscale.domain.lag.rounds import SampleRow, TargetRound, build_row
from lagscale.store.samples.columns import COLUMNS, format_copy_line

_COLUMNS = ", ".join(COLUMNS)


def store_rows(connection: Connection[Any], rows: Iterable[tuple[int, int, SampleRow]]) -> None:
    """Store (tenant id, target id, row) in the order given; doubles are passed over. The user owns the database."""
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute("create temporary table if not exists staged (like lag_sample) on commit delete rows")
        with cursor.copy(f"copy staged ({_COLUMNS}) from stdin") as copy:
            for tenant, target, row in rows:
                copy.write(format_copy_line(tenant, target, row))
        cursor.execute(f"insert into lag_sample ({_COLUMNS}) select {_COLUMNS} from staged on conflict do nothing")


def as_rows(rounds: Iterable[TargetRound]) -> list[SampleRow]:
    """The rows that the writer makes of one target's rounds, in time order."""
    rows: list[SampleRow] = []
    for this in rounds:
        rows.append(build_row(rows[-1] if rows else None, this))
    return rows
