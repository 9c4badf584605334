"""Writes what a scaler replica told KEDA, and which monitors were asked for. Called by the scaler's recorder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from lagscale.store.connection import Pool
from lagscale.store.faults import translate_errors
from lagscale.store.queries import load


@dataclass(frozen=True, slots=True)
class Decision:
    """One answer to KEDA, or the error in its place. Times are milliseconds of the database's clock since 1970.

    Attributes:
        snapshot_ms: the newest round that the answer saw; None without one, and where the store was silent.
        version: of the registration by which it was answered.
        overrides: the policy keys that the ScaledObject gave beside it, None without any.
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
    """Appends decisions and marks monitors as asked for; both serve several tenants in one statement."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def append(self, decisions: Sequence[Decision]) -> None:
        """Store the decisions; doubles are nothing.

        Raises:
            StoreUnavailable: the store did not answer.
        """
        if not decisions:
            return
        columns = [[_to_parameter(getattr(one, field.name)) for one in decisions] for field in fields(Decision)]
        async with translate_errors(), self._pool.connection() as connection:
            await connection.execute(load("append_decisions"), columns)

    async def mark_asked(self, monitor_ids: Sequence[int]) -> None:
        """Note that these monitors were asked for just now.

        Raises:
            StoreUnavailable: the store did not answer.
        """
        if monitor_ids:
            async with translate_errors(), self._pool.connection() as connection:
                await connection.execute(load("monitor_mark_requested"), [list(monitor_ids)])


def _to_parameter(value: Any) -> Any:
    """A value as the statement's parameters have it."""
    return json.dumps(dict(value), sort_keys=True) if isinstance(value, Mapping) else value
