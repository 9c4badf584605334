"""Export of the audit log as lines of JSON, in batches of one transaction each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from lagscale.store.registry import audit, history
from lagscale.store.registry.audit import AuditFilter
from lagscale.store.registry.session import Row
from services.api.audit.schemas import serialize_event
from services.api.deps import ScopeAccess, TenantAccess


async def export_lines(access: TenantAccess | ScopeAccess, criteria: AuditFilter) -> AsyncIterator[bytes]:
    """Events as lines of JSON, the oldest first, some lines at a time; events that are added meanwhile are left out.

    The first batch is read before this returns, so that an error is answered before the response begins.

    Args:
        access: to a tenant, whose events are exported; or to all events as far as the caller's scope reaches.
        criteria: which of them.

    Raises:
        NotFound: no such tenant for this caller.
    """
    async with access.session() as session:
        now = await history.read_clock(session)
    criteria = replace(criteria, until=now if criteria.until is None else min(criteria.until, now))
    return _stream_lines(await _read_batch(access, criteria, None), access, criteria)


async def _stream_lines(
    rows: Sequence[Row], access: TenantAccess | ScopeAccess, criteria: AuditFilter
) -> AsyncIterator[bytes]:
    # One transaction for each batch: a slow reader must not occupy one of the few connections.
    while rows:
        yield b"".join(serialize_event(row).model_dump_json(by_alias=True).encode() + b"\n" for row in rows)
        rows = await _read_batch(access, criteria, rows[-1])


async def _read_batch(access: TenantAccess | ScopeAccess, criteria: AuditFilter, last: Row | None) -> Sequence[Row]:
    async with access.session() as session:
        return await audit.read_after(session, criteria, last)
