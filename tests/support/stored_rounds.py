"""Writes rounds of a tenant's topic into the database, with the markers that the scraper would write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

import psycopg

from lagscale.domain.lag.rounds import Note, SampleRow, TargetRound, build_row
from lagscale.domain.lag.samples import Flag, Sample

_COLUMNS = (
    "ts", "target_id", "tenant_id", "epoch", "notes", "lags", "ends", "flags", "lost",
    "carried_lags", "carried_ends", "carried_flags", "carried_ages", "members", "members_age",
    "parts", "never", "oldest_age", "total_lag", "max_lag", "max_part", "lagging",
    "none_total", "none_max", "none_max_part", "none_lagging", "moved_age", "known_age", "absent_age",
)  # fmt: skip


def target_of(url: str, tenant: str, topic: str) -> tuple[int, int]:
    """(tenant id, target id) of a topic of the cluster."""
    query = "select t.id, l.id from lag_target l join tenant t on t.id = l.tenant_id where t.name = %s and l.topic = %s"
    with psycopg.connect(url) as connection:
        found = connection.execute(query, (tenant, topic)).fetchone()
    assert found is not None
    return found


def write(
    url: str, tenant: str, topic: str, rounds: Sequence[tuple[float, Sequence[int | None]]], members: int | None = 0
) -> None:
    """Store rounds of (seconds ago, lag of each partition or None where it is missing), the oldest first.

    Every partition ends at offset 10,000; no partition at all means that the topic does not exist.
    """
    tenant_id, target_id = target_of(url, tenant, topic)
    with psycopg.connect(url) as connection:
        now = connection.execute("select (extract(epoch from clock_timestamp()) * 1000)::bigint").fetchone()
        assert now is not None
        last: SampleRow | None = None
        for seconds, lags in rounds:
            samples = tuple(None if lag is None else Sample(lag, 10_000, Flag(0)) for lag in lags)
            taken = TargetRound(
                now[0] - round(seconds * 1000), 0, samples, members=members, members_age_ms=0,
                notes=Note(0) if lags else Note.NO_TOPIC,
            )  # fmt: skip
            last = build_row(last, taken)
            _insert(connection, tenant_id, target_id, last)


def _insert(connection: psycopg.Connection[Any], tenant_id: int, target_id: int, row: SampleRow) -> None:
    taken, marks, carried = row.round, row.markers, row.carried
    missing = any(kept is not None for kept in carried)
    values: list[Any] = [
        taken.at_ms / 1000, target_id, tenant_id, taken.incarnation, int(taken.notes),
        [sample and sample.lag for sample in taken.samples], [sample and sample.end for sample in taken.samples],
        [int(sample.flags) if sample else 0 for sample in taken.samples], None,
        [kept and kept.sample.lag for kept in carried] if missing else None,
        [kept and kept.sample.end for kept in carried] if missing else None,
        [kept and int(kept.sample.flags) for kept in carried] if missing else None,
        [kept and kept.age_ms for kept in carried] if missing else None,
        taken.members, taken.members_age_ms,
        *astuple(marks), taken.absent_age_ms,
    ]  # fmt: skip
    places = ", ".join("to_timestamp(%s)" if name == "ts" else "%s" for name in _COLUMNS)
    connection.execute(f"insert into lag_sample ({', '.join(_COLUMNS)}) values ({places})", values)
