"""Recent rounds of targets, from which group status is computed. Used by the API, in the role `lagscale_scaler`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lagscale.domain.lag.rounds import TargetRound
from lagscale.store.connection import Pool, fetch_rows, translate_errors
from lagscale.store.queries import to_arrays
from lagscale.store.samples.columns import read_round

#: At most so many samples of one target are read, all partitions together.
_MAX_SAMPLES: Final = 500_000


@dataclass(frozen=True, slots=True)
class RoundsRequest:
    """A target of a tenant, and how far back from its newest round to read, milliseconds."""

    tenant_id: int
    target_id: int
    reach_ms: int


@dataclass(frozen=True, slots=True)
class RoundsResult:
    """Target id -> its rounds, oldest first, for targets that have any; and the database's clock."""

    now_ms: int
    rounds: Mapping[int, tuple[TargetRound, ...]]


@dataclass(frozen=True, slots=True)
class NewestRound:
    """A target's newest round: partitions, age, and whether no partition has lag."""

    partitions: int
    age_ms: int
    is_quiet: bool


class RoundReader:
    """Reads samples of any tenant; the caller has found the targets in the tenant's context.

    Every method raises `StoreUnavailable` if the store does not answer.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def read(self, requests: Sequence[RoundsRequest]) -> RoundsResult:
        """The rounds of each target as far back as requested, and the last one before that."""
        arrays = to_arrays(requests, targets="target_id", tenants="tenant_id", reaches="reach_ms")
        rounds: dict[int, list[TargetRound]] = {}
        async with translate_errors(), self._pool.connection() as connection:
            for row in await fetch_rows(connection, "recent_rounds", arrays | {"most": _MAX_SAMPLES}):
                rounds.setdefault(row["id"], []).append(read_round(row))
            # The clock last: no round is younger than it.
            cursor = await connection.execute("select (extract(epoch from clock_timestamp()) * 1000)::bigint")
            [(now_ms,)] = await cursor.fetchall()
        return RoundsResult(now_ms, {target: tuple(found) for target, found in rounds.items()})

    async def newest(self, requests: Sequence[RoundsRequest]) -> dict[int, NewestRound]:
        """The newest round of each target that has one."""
        arrays = to_arrays(requests, targets="target_id", tenants="tenant_id")
        async with translate_errors(), self._pool.connection() as connection:
            found = await fetch_rows(connection, "newest_rounds", arrays)
        return {row["id"]: NewestRound(row["parts"], row["age_ms"], row["is_quiet"]) for row in found}
