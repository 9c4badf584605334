"""The answers that frozen monitors keep: written once by whichever replica is asked first, then read by all.

Hand-written SQL under the role `lagscale_scaler`, behind one tenant's wall; freezing itself is `store/registry`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from lagscale.domain.verdict.contract import Told
from lagscale.store.connection import Pool
from lagscale.store.faults import translated
from lagscale.store.queries import load


@dataclass(frozen=True, slots=True)
class FrozenAsk:
    """Whose answer is kept.

    Attributes:
        overrides: the policy keys that a ScaledObject gave beside the registration, as sorted JSON; empty without any.
    """

    tenant_id: int
    monitor_id: int
    overrides: str = ""


@dataclass(frozen=True, slots=True)
class FrozenAnswer:
    """What a frozen monitor answers; `told` is None where there was nothing to hold. `since_ms` is the freeze's."""

    told: Told | None
    since_ms: int


class PostgresFreezes:
    """Keeps the answers of frozen monitors."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def kept(self, asked: FrozenAsk, freeze_ids: Sequence[str]) -> FrozenAnswer | None:
        """The answer that one of these freezes keeps; None while none does.

        Raises:
            StoreUnavailable: the store did not answer.
        """
        async with translated(), self._pool.connection() as connection, connection.transaction():
            return await _kept(connection, asked, freeze_ids)

    async def keep(self, asked: FrozenAsk, freeze_ids: Sequence[str], answer: FrozenAnswer) -> FrozenAnswer:
        """Keep the answer under these freezes, where nobody was faster; the one that is kept now.

        Raises:
            StoreUnavailable: the store did not answer.
        """
        told = answer.told
        facts = {
            "since_ms": answer.since_ms,
            "known_ms": None if told is None else told.held_since_ms,
            "value": None if told is None else told.value,
            "active": None if told is None else told.active,
        }
        async with translated(), self._pool.connection() as connection, connection.transaction():
            await _behind_wall(connection, asked)
            await connection.execute(load("frozen_keep"), _facts(asked, freeze_ids) | facts)
            found = await _kept(connection, asked, freeze_ids)
        # Removed meanwhile: the next answer is measured again.
        return answer if found is None else found


async def _behind_wall(connection: AsyncConnection[Any], asked: FrozenAsk) -> None:
    await connection.execute("select set_config('lagscale.tenant', %s, true)", [str(asked.tenant_id)])


async def _kept(connection: AsyncConnection[Any], asked: FrozenAsk, freeze_ids: Sequence[str]) -> FrozenAnswer | None:
    await _behind_wall(connection, asked)
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(load("frozen_kept"), _facts(asked, freeze_ids))
        row = await cursor.fetchone()
    if row is None:
        return None
    told = None if row["known_ms"] is None else Told(row["value"], row["active"], row["known_ms"])
    return FrozenAnswer(told, row["since_ms"])


def _facts(asked: FrozenAsk, freeze_ids: Sequence[str]) -> dict[str, Any]:
    return {
        "tenant": asked.tenant_id,
        "monitor": asked.monitor_id,
        "overrides": asked.overrides,
        "freezes": list(freeze_ids),
    }
