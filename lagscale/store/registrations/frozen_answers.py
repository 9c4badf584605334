"""The stored answers of frozen monitors: written once, by the first replica that is asked, then read by all.

Hand-written SQL under the role `lagscale_scaler`, in one tenant's context; freezes themselves are in `store/registry`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from lagscale.domain.verdict.contract import Answer
from lagscale.store.connection import Pool, set_tenant_context
from lagscale.store.faults import translate_errors
from lagscale.store.queries import load


@dataclass(frozen=True, slots=True)
class FrozenAnswerKey:
    """Identifies a stored answer.

    Attributes:
        overrides: the policy keys that a ScaledObject gave in addition, as sorted JSON; empty without any.
    """

    tenant_id: int
    monitor_id: int
    overrides: str = ""


@dataclass(frozen=True, slots=True)
class FrozenAnswer:
    """The answer of a frozen monitor; `last_known` is None where there was none. `since_ms` is the freeze's beginning."""

    last_known: Answer | None
    since_ms: int


class PostgresFreezes:
    """Stores the answers of frozen monitors."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def find_answer(self, key: FrozenAnswerKey, freeze_ids: Sequence[str]) -> FrozenAnswer | None:
        """The stored answer of one of these freezes; None before the first.

        Raises:
            StoreUnavailable: the store did not answer.
        """
        async with translate_errors(), self._pool.connection() as connection, connection.transaction():
            return await _find_answer(connection, key, freeze_ids)

    async def store_first(self, key: FrozenAnswerKey, freeze_ids: Sequence[str], answer: FrozenAnswer) -> FrozenAnswer:
        """Store the answer for these freezes unless another replica was first; returns the stored one.

        Raises:
            StoreUnavailable: the store did not answer.
        """
        last_known = answer.last_known
        parameters = {
            "since_ms": answer.since_ms,
            "known_ms": None if last_known is None else last_known.last_known_ms,
            "value": None if last_known is None else last_known.value,
            "active": None if last_known is None else last_known.active,
        }
        async with translate_errors(), self._pool.connection() as connection, connection.transaction():
            await set_tenant_context(connection, key.tenant_id)
            await connection.execute(load("frozen_answer_insert"), _parameters(key, freeze_ids) | parameters)
            found = await _find_answer(connection, key, freeze_ids)
        # The freeze was removed meanwhile: the next answer is measured again.
        return answer if found is None else found


async def _find_answer(
    connection: AsyncConnection[Any], key: FrozenAnswerKey, freeze_ids: Sequence[str]
) -> FrozenAnswer | None:
    await set_tenant_context(connection, key.tenant_id)
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(load("frozen_answer_select"), _parameters(key, freeze_ids))
        row = await cursor.fetchone()
    if row is None:
        return None
    last_known = None if row["known_ms"] is None else Answer(row["value"], row["active"], row["known_ms"])
    return FrozenAnswer(last_known, row["since_ms"])


def _parameters(key: FrozenAnswerKey, freeze_ids: Sequence[str]) -> dict[str, Any]:
    return {
        "tenant": key.tenant_id,
        "monitor": key.monitor_id,
        "overrides": key.overrides,
        "freezes": list(freeze_ids),
    }
