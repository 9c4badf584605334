"""Histories on the real database: rows put in as the scraper stores them, judged by the scaler's adapter."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import ClassVar

import psycopg

from lagscale.domain.lag.rounds import SampleRow
from lagscale.domain.verdict.contract import Judgment, VerdictRequest
from lagscale.store.connection import Pool, open_pool
from lagscale.store.samples.columns import COLUMNS, format_copy_line
from lagscale.store.verdicts import judge as postgres
from lagscale.store.verdicts.judge import PostgresVerdicts

TENANT = 7
_TARGETS = itertools.count(1)
_COPY = f"copy lag_sample ({', '.join(COLUMNS)}) from stdin"


@dataclass
class Stored:
    """A database with histories, and who judges them."""

    WAYS: ClassVar = postgres._STATEMENTS

    url: str
    verdicts: PostgresVerdicts
    pool: Pool

    async def judge(self, requests: Sequence[VerdictRequest], first: str) -> list[Judgment]:
        """Judge by one of the statements and, where it cannot decide, by those after it."""
        async with self.pool.connection() as connection:
            return await postgres._judge(connection, requests, [self.WAYS.index(first)] * len(requests))

    def put(self, histories: Iterable[Mapping[int, Sequence[SampleRow]]]) -> list[dict[int, int]]:
        """Store histories in the order given, each under target ids of its own.

        Returns:
            for each history: its own name of a target -> the target's id.
        """
        names = []
        with psycopg.connect(self.url) as connection, connection.cursor() as cursor, cursor.copy(_COPY) as copy:
            for history in histories:
                ids = self.name(history)
                for topic, rows in history.items():
                    for row in rows:
                        copy.write(format_copy_line(TENANT, ids[topic], row))
                names.append(ids)
        return names

    def name(self, history: Mapping[int, Sequence[SampleRow]]) -> dict[int, int]:
        """Target ids of its own for a history whose rows come one by one."""
        return {topic: next(_TARGETS) for topic in sorted(history)}

    def add(self, target: int, row: SampleRow) -> None:
        """Store one row that arrived."""
        with psycopg.connect(self.url) as connection, connection.cursor() as cursor, cursor.copy(_COPY) as copy:
            copy.write(format_copy_line(TENANT, target, row))

    def clear(self) -> None:
        """Forget all samples."""
        with psycopg.connect(self.url) as connection:
            connection.execute("truncate lag_sample")


@asynccontextmanager
async def stored(url: str) -> AsyncIterator[Stored]:
    """Judge as the scaler does: in its role, by its pool."""
    pool = open_pool(url, "lagscale_scaler", 1, application="contract")
    await pool.open()
    try:
        yield Stored(url, PostgresVerdicts(pool), pool)
    finally:
        await pool.close()
