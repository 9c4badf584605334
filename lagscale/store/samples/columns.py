"""Rows of `lag_sample` as text for COPY, and back. Used by `postgres_sync.py` and by tests of the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lagscale.clock import to_datetime
from lagscale.domain.lag.rounds import Carried, Markers, Note, SampleRow, TargetRound
from lagscale.domain.lag.samples import Flag, Sample

#: In the order of `format_copy_line`.
COLUMNS = (
    "ts", "target_id", "tenant_id", "epoch", "notes", "lags", "ends", "flags", "lost", "carried_lags", "carried_ends",
    "carried_flags", "carried_ages", "members", "members_age", "group_state", "parts", "never", "oldest_age",
    "total_lag", "max_lag", "max_part", "lagging", "none_total", "none_max", "none_max_part", "none_lagging",
    "moved_age", "known_age", "absent_age", "ends_asked", "ends_answered",
)  # fmt: skip
_MARKERS = tuple(Markers.__dataclass_fields__)
_NULL = "\\N"


def format_copy_line(tenant_id: int, target_id: int, row: SampleRow) -> str:
    """One line of COPY's text format. Everything in it is a number, so nothing needs escaping."""
    this = row.round
    samples = this.samples
    flags = [int(s.flags) if s is not None else 0 for s in samples]
    for partition in this.excluded:
        if partition < len(flags):
            flags[partition] = int(Flag.EXCLUDED)
    lost = [s.lost if s is not None else 0 for s in samples]
    fields: list[object] = [
        to_datetime(this.at_ms).isoformat(),
        target_id,
        tenant_id,
        this.incarnation,
        int(this.notes),
        _format_array([None if s is None else s.lag for s in samples]),
        _format_array([None if s is None else s.end for s in samples]),
        _format_array(flags) if any(flags) else None,
        _format_array(lost) if any(lost) else None,
        *_format_carried(row.carried),
        this.members,
        this.members_age_ms,
        this.group_state,
        *[getattr(row.markers, name) for name in _MARKERS],
        this.absent_age_ms,
        this.ends_asked_ms,
        this.ends_answered_ms,
    ]
    return "\t".join([_NULL if field is None else str(field) for field in fields]) + "\n"


def _format_carried(carried: Sequence[Carried | None]) -> tuple[str | None, str | None, str | None, str | None]:
    if all(one is None for one in carried):
        return None, None, None, None
    return (
        _format_array([None if c is None else c.sample.lag for c in carried]),
        _format_array([None if c is None else c.sample.end for c in carried]),
        _format_array([None if c is None else int(c.sample.flags) for c in carried]),
        _format_array([None if c is None else c.age_ms for c in carried]),
    )


def _format_array(values: Sequence[int | None]) -> str:
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def read_row(columns: Mapping[str, Any]) -> SampleRow:
    """The row of a `lag_sample`'s columns; the time comes as `at_ms`."""
    lags, ends = columns["lags"], columns["ends"]
    flags = columns["flags"] or [0] * len(lags)
    lost = columns["lost"] or [0] * len(lags)
    samples = tuple(
        [
            None if lag is None else Sample(lag, end, Flag(flag), missed or 0)
            for lag, end, flag, missed in zip(lags, ends, flags, lost, strict=True)
        ]
    )
    this = TargetRound(
        at_ms=columns["at_ms"],
        incarnation=columns["epoch"],
        samples=samples,
        excluded=frozenset(n for n, flag in enumerate(flags) if flag and flag & Flag.EXCLUDED),
        notes=Note(columns["notes"]),
        members=columns["members"],
        members_age_ms=columns["members_age"],
        group_state=columns["group_state"],
        absent_age_ms=columns["absent_age"],
        ends_asked_ms=columns["ends_asked"],
        ends_answered_ms=columns["ends_answered"],
    )
    return SampleRow(this, _read_carried(columns, len(lags)), Markers(**{name: columns[name] for name in _MARKERS}))


def _read_carried(columns: Mapping[str, Any], partitions: int) -> tuple[Carried | None, ...]:
    if columns["carried_lags"] is None:
        return (None,) * partitions
    return tuple(
        [
            None if lag is None else Carried(Sample(lag, end, Flag(flag or 0)), age)
            for lag, end, flag, age in zip(
                columns["carried_lags"],
                columns["carried_ends"],
                columns["carried_flags"],
                columns["carried_ages"],
                strict=True,
            )
        ]
    )
