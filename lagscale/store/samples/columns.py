"""The columns of `lag_sample`, rows of it as text for COPY, and back; for whoever writes or reads samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lagscale.clock import to_datetime
from lagscale.domain.lag.rounds import Carried, Markers, Note, SampleRow, TargetRound
from lagscale.domain.lag.samples import Flag, Sample

#: Column -> type, in the order of `format_copy_line`. Statements, COPY and the registry's view take them from here.
COLUMNS: Final[Mapping[str, str]] = {
    "ts": "timestamptz",
    "target_id": "int",
    "tenant_id": "int",
    "epoch": "int",
    "notes": "smallint",
    "lags": "bigint[]",
    "ends": "bigint[]",
    "flags": "smallint[]",
    "lost": "bigint[]",
    "carried_lags": "bigint[]",
    "carried_ends": "bigint[]",
    "carried_flags": "smallint[]",
    "carried_ages": "int[]",
    "members": "int",
    "members_age": "int",
    "group_state": "smallint",
    "parts": "int",
    "never": "int",
    "oldest_age": "int",
    "total_lag": "bigint",
    "max_lag": "bigint",
    "max_part": "int",
    "lagging": "int",
    "none_total": "bigint",
    "none_max": "bigint",
    "none_max_part": "int",
    "none_lagging": "int",
    "moved_age": "int",
    "known_age": "int",
    "absent_age": "int",
    "ends_asked": "int",
    "ends_answered": "int",
}
_COLUMN_NAMES = {"progress_age": "moved_age", "coverage_age": "known_age"}
#: Marker -> its column, in the order of both.
_MARKERS: Final = {name: _COLUMN_NAMES.get(name, name) for name in Markers.__dataclass_fields__}
#: What `read_row` and `read_round` need besides the time.
ROW_COLUMNS: Final = tuple(name for name in COLUMNS if name not in {"ts", "target_id", "tenant_id"})
ROUND_COLUMNS: Final = tuple(
    name for name in ROW_COLUMNS if name not in _MARKERS.values() and not name.startswith("carried_")
)
_NO_FLAGS: Final = Flag(0)
_NULL: Final = "\\N"


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
    """The row of `ROW_COLUMNS`; the time comes as `at_ms`."""
    markers = Markers(**{name: columns[column] for name, column in _MARKERS.items()})
    return SampleRow(read_round(columns), _read_carried(columns, len(columns["lags"])), markers)


def read_round(columns: Mapping[str, Any]) -> TargetRound:
    """The round of `ROUND_COLUMNS`; the time comes as `at_ms`."""
    lags = columns["lags"]
    flags = columns["flags"] or [0] * len(lags)
    lost = columns["lost"] or [0] * len(lags)
    return TargetRound(
        at_ms=columns["at_ms"],
        incarnation=columns["epoch"],
        samples=tuple(
            [
                None if lag is None else Sample(lag, end, Flag(flag) if flag else _NO_FLAGS, missed or 0)
                for lag, end, flag, missed in zip(lags, columns["ends"], flags, lost, strict=True)
            ]
        ),
        excluded=frozenset(number for number, flag in enumerate(flags) if flag and flag & Flag.EXCLUDED),
        notes=Note(columns["notes"]),
        members=columns["members"],
        members_age_ms=columns["members_age"],
        group_state=columns["group_state"],
        absent_age_ms=columns["absent_age"],
        ends_asked_ms=columns["ends_asked"],
        ends_answered_ms=columns["ends_answered"],
    )


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
