"""What the scaler stores of its answers: decisions, which monitors KEDA requested, and the answers of frozen monitors.

A frozen monitor's answer is written once, by the first replica that is asked, then read by all; freezes themselves are
in `store/registry`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from psycopg import AsyncConnection

from lagscale.domain.verdict.contract import Answer
from lagscale.store.connection import Pool, fetch_rows, set_tenant_context, translate_errors
from lagscale.store.queries import load


@dataclass(frozen=True, slots=True)
class Decision:
    """One answer to KEDA, or the error instead. Times are milliseconds of the database's clock since 1970.

    Attributes:
        snapshot_ms: the newest round of the answer; None without one, and while the store was unavailable.
        version: of the registration that was applied.
        overrides: the policy keys that the ScaledObject gave in addition; None without any.
    """

    decided_ms: int
    tenant_id: int
    monitor_id: int
    replica: str
    snapshot_ms: int | None
    verdict: str
    value: float | None
    active: bool | None
    held: bool
    reason: str
    code: str
    version: int | None = None
    overrides: Mapping[str, str] | None = None


class PostgresDecisions:
    """Appends decisions and marks monitors as requested; both serve several tenants in one statement.

    Every method raises `StoreUnavailable` if the store does not answer.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def append(self, decisions: Sequence[Decision]) -> None:
        """Store the decisions; duplicates are ignored."""
        if not decisions:
            return
        columns = [[_to_parameter(getattr(one, field.name)) for one in decisions] for field in fields(Decision)]
        async with translate_errors(), self._pool.connection() as connection:
            await connection.execute(load("append_decisions"), columns)

    async def mark_asked(self, monitor_ids: Sequence[int]) -> None:
        """Record that these monitors were requested just now."""
        if monitor_ids:
            async with translate_errors(), self._pool.connection() as connection:
                await connection.execute(load("monitor_mark_requested"), [list(monitor_ids)])


def _to_parameter(value: Any) -> Any:
    """A value as the statement's parameters have it."""
    return json.dumps(dict(value), sort_keys=True) if isinstance(value, Mapping) else value


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
    """Stores the answers of frozen monitors. Every method raises `StoreUnavailable` if the store does not answer."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def find_answer(self, key: FrozenAnswerKey, freeze_ids: Sequence[str]) -> FrozenAnswer | None:
        """The stored answer of one of these freezes; None before the first."""
        async with translate_errors(), self._pool.connection() as connection, connection.transaction():
            return await _find_answer(connection, key, freeze_ids)

    async def store_first(self, key: FrozenAnswerKey, freeze_ids: Sequence[str], answer: FrozenAnswer) -> FrozenAnswer:
        """Store the answer for these freezes unless another replica was first; returns the stored one."""
        known = answer.last_known
        value, active, known_ms = (None,) * 3 if known is None else (known.value, known.active, known.last_known_ms)
        parameters = {"since_ms": answer.since_ms, "known_ms": known_ms, "value": value, "active": active}
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
    rows = await fetch_rows(connection, "frozen_answer_select", _parameters(key, freeze_ids))
    if not rows:
        return None
    row = rows[0]
    last_known = None if row["known_ms"] is None else Answer(row["value"], row["active"], row["known_ms"])
    return FrozenAnswer(last_known, row["since_ms"])


def _parameters(key: FrozenAnswerKey, freeze_ids: Sequence[str]) -> dict[str, Any]:
    freezes = list(freeze_ids)
    return {"tenant": key.tenant_id, "monitor": key.monitor_id, "overrides": key.overrides, "freezes": freezes}
