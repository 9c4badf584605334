"""Recent rounds of targets, as states are told from. Used by the API, in the role `lagscale_scaler`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from psycopg.rows import dict_row

from lagscale.domain.lag.rounds import TargetRound
from lagscale.store.connection import Pool
from lagscale.store.faults import translate_errors
from lagscale.store.queries import load
from lagscale.store.samples.columns import read_round

#: Samples of one target that are read at most, all partitions together.
_MAX_SAMPLES: Final = 500_000


@dataclass(frozen=True, slots=True)
class RoundsRequest:
    """A target of a tenant, and how far behind its newest round it is wanted, milliseconds."""

    tenant_id: int
    target_id: int
    reach_ms: int


@dataclass(frozen=True, slots=True)
class RoundsResult:
    """Target id -> its rounds, the oldest first, for targets that have any; and the database's clock then."""

    now_ms: int
    rounds: Mapping[int, tuple[TargetRound, ...]]


@dataclass(frozen=True, slots=True)
class NewestRound:
    """Of a target's newest round: partitions, age, and whether nothing waits in any of them."""

    partitions: int
    age_ms: int
    quiet: bool


class RoundReader:
    """Reads samples of any tenant; whoever asks has found the targets behind the tenant's wall."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def read(self, requests: Sequence[RoundsRequest]) -> RoundsResult:
        """The rounds of each target as far back as wanted, and the last one before that.

        Raises:
            StoreUnavailable: the store did not answer.
        """
        parameters = {
            "targets": [one.target_id for one in requests],
            "tenants": [one.tenant_id for one in requests],
            "reaches": [one.reach_ms for one in requests],
            "most": _MAX_SAMPLES,
        }
        rounds: dict[int, list[TargetRound]] = {}
        async with (
            translate_errors(),
            self._pool.connection() as connection,
            connection.cursor(row_factory=dict_row) as cursor,
        ):
            await cursor.execute(load("recent_rounds"), parameters)
            for row in await cursor.fetchall():
                rounds.setdefault(row["id"], []).append(read_round(row))
            # The clock last: no round is younger than it.
            await cursor.execute("select (extract(epoch from clock_timestamp()) * 1000)::bigint as now_ms")
            [clock] = await cursor.fetchall()
        return RoundsResult(clock["now_ms"], {target: tuple(found) for target, found in rounds.items()})

    async def newest(self, requests: Sequence[RoundsRequest]) -> dict[int, NewestRound]:
        """What the newest round of each target says, for targets that have one.

        Raises:
            StoreUnavailable: the store did not answer.
        """
        parameters = {
            "targets": [one.target_id for one in requests],
            "tenants": [one.tenant_id for one in requests],
        }
        async with (
            translate_errors(),
            self._pool.connection() as connection,
            connection.cursor(row_factory=dict_row) as cursor,
        ):
            await cursor.execute(load("newest_rounds"), parameters)
            found = await cursor.fetchall()
        return {row["id"]: NewestRound(row["parts"], row["age_ms"], row["is_quiet"]) for row in found}
