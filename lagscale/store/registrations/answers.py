"""Stores the decisions of a scaler replica, and which monitors KEDA requested; the scaler's decision log calls it."""

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
    """Appends decisions and marks monitors as requested; both serve several tenants in one statement."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def append(self, decisions: Sequence[Decision]) -> None:
        """Store the decisions; duplicates are ignored.

        Raises:
            StoreUnavailable: the store did not answer.
        """
        if not decisions:
            return
        columns = [[_to_parameter(getattr(one, field.name)) for one in decisions] for field in fields(Decision)]
        async with translate_errors(), self._pool.connection() as connection:
            await connection.execute(load("append_decisions"), columns)

    async def mark_asked(self, monitor_ids: Sequence[int]) -> None:
        """Record that these monitors were requested just now.

        Raises:
            StoreUnavailable: the store did not answer.
        """
        if monitor_ids:
            async with translate_errors(), self._pool.connection() as connection:
                await connection.execute(load("monitor_mark_requested"), [list(monitor_ids)])


def _to_parameter(value: Any) -> Any:
    """A value as the statement's parameters have it."""
    return json.dumps(dict(value), sort_keys=True) if isinstance(value, Mapping) else value
