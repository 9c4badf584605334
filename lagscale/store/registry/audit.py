"""Who changed what, and from where: one row in the same transaction as the change. Of secrets, only whether they are set."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import insert

from lagscale.store.registry import tables
from lagscale.store.registry.session import RegistrySession, TenantSession

#: Never recorded, whatever row they come from.
_SECRET_COLUMNS = frozenset({"digest"})
_MASKED_COLUMNS = frozenset({"secrets"})
#: Noise: they follow from the change itself.
_DERIVED_COLUMNS = frozenset({"id", "tenant_id", "cluster_id", "updated_at", "created_at", "content_hash"})

Facts = Mapping[str, Any]


async def record(
    session: RegistrySession,
    action: str,
    object_name: str,
    before: Facts | None,
    after: Facts | None,
    *,
    tenant_id: int | None = None,
) -> None:
    """Write the row.

    Args:
        session: the transaction of the change; behind a tenant's wall the row is that tenant's, else the platform's.
        action: as in `monitor.create`.
        object_name: its name, as in `monitor/orders`.
        before, after: the rows, None where there is none.
        tenant_id: whose row it is, where the platform changes a tenant's object without standing behind its wall.
    """
    await session.execute(
        insert(tables.audit_event).values(
            tenant_id=session.tenant_id if isinstance(session, TenantSession) else tenant_id,
            actor=session.actor,
            action=action,
            object=object_name,
            before=_masked(before),
            after=_masked(after),
            origin=session.origin,
        )
    )


def _masked(facts: Facts | None) -> dict[str, Any] | None:
    if facts is None:
        return None
    recorded = {name: value for name, value in facts.items() if name not in _SECRET_COLUMNS | _DERIVED_COLUMNS}
    return {name: _to_json(name, value) for name, value in recorded.items()}


def _to_json(name: str, value: Any) -> Any:
    if name in _MASKED_COLUMNS:
        return None if value is None else "set"
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value
