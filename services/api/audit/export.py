"""The audit as callers read it: who changed what, when, from where, before and after."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from lagscale.store.registry import audit, history
from lagscale.store.registry.audit import AuditFilter
from lagscale.store.registry.paging import Page, PageRequest
from lagscale.store.registry.session import AccessScope, RegistryDatabase, RegistrySession, Row
from services.api.schemas import ApiSchema


class AuditEventOut(ApiSchema):
    """One change. `before` and `after` hold the object's columns, secrets only as `set`."""

    id: UUID = Field(description="Tells doubles apart where two exports overlap.")
    at: datetime
    tenant: str | None = Field(examples=["shop"], description="Null for what is the platform's.")
    actor: str = Field(
        examples=["key 3f9a1c5e7b20 (ci)"],
        description="`key PREFIX (NAME)`, `oidc SUBJECT`, `bootstrap key`, `environment`, `keda INSTANCE/NAMESPACE` or "
        "`housekeeping`.",
    )
    action: str = Field(examples=["monitor.update"])
    object: str = Field(examples=["monitor/orders"])
    origin: str | None = Field(examples=["10.1.2.3"], description="The client's address; null where no request asked.")
    before: dict[str, Any] | None = Field(description="Null where it was not there.")
    after: dict[str, Any] | None = Field(description="Null where it is not there any more.")


@dataclass(frozen=True, slots=True)
class AuditTrail:
    """The use cases. With a tenant it is that tenant's audit, without one the whole platform's."""

    database: RegistryDatabase

    async def page(
        self, scope: AccessScope, tenant: str | None, criteria: AuditFilter, page_request: PageRequest
    ) -> Page:
        """One page, the newest first.

        Raises:
            NotFound: no such tenant for this scope.
            InvalidInput: the cursor is none of ours.
        """
        async with self._open_session(scope, tenant) as session:
            return await audit.list_page(session, criteria, page_request)

    async def lines(self, scope: AccessScope, tenant: str | None, criteria: AuditFilter) -> AsyncIterator[bytes]:
        """All of it as lines of JSON, the oldest first, some lines at a time. What comes in meanwhile is left out.

        The first ones are read before this returns, so that what is wrong is told before the answer begins.

        Raises:
            NotFound: no such tenant for this scope.
        """
        async with self._open_session(scope, tenant) as session:
            now = await history.read_clock(session)
        criteria = replace(criteria, until=now if criteria.until is None else min(criteria.until, now))
        first = await self._read_batch(scope, tenant, criteria, None)
        return self._stream_lines(first, scope, tenant, criteria)

    async def _stream_lines(
        self, rows: Sequence[Row], scope: AccessScope, tenant: str | None, criteria: AuditFilter
    ) -> AsyncIterator[bytes]:
        # A transaction for each turn: a slow reader must not keep one of the few connections.
        while rows:
            yield b"".join(serialize_event(row).model_dump_json(by_alias=True).encode() + b"\n" for row in rows)
            rows = await self._read_batch(scope, tenant, criteria, rows[-1])

    async def _read_batch(
        self, scope: AccessScope, tenant: str | None, criteria: AuditFilter, last: Row | None
    ) -> Sequence[Row]:
        async with self._open_session(scope, tenant) as session:
            return await audit.read_after(session, criteria, last)

    def _open_session(self, scope: AccessScope, tenant: str | None) -> AbstractAsyncContextManager[RegistrySession]:
        return self.database.within(scope) if tenant is None else self.database.tenant(scope, tenant)


def serialize_event(row: Row) -> AuditEventOut:
    """An event of the audit."""
    return AuditEventOut.model_validate({name: row[name] for name in AuditEventOut.model_fields})
