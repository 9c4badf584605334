"""The audit log of a tenant, or of the platform and all tenants: page by page, or as lines of JSON."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse
from pydantic import Field

from lagscale.store.registry import audit, history
from lagscale.store.registry.audit import AuditFilter
from lagscale.store.registry.session import Row
from services.api.deps import PageQuery, Platform, ScopeAccess, TenantAccess, TenantAdmin
from services.api.schemas import ApiSchema, Line, Listing, Name, QueryTime, serialize_page

router = APIRouter(tags=["audit"])
_TENANT_PATH = "/v1/tenants/{tenant}/audit"
_PLATFORM_PATH = "/v1/audit"
_LINES = "application/x-ndjson"
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "One event per line, the oldest first.",
        "content": {_LINES: {"schema": {"type": "string"}}},
    }
}


class AuditEventOut(ApiSchema):
    """One change. `before` and `after` hold the object's columns; secrets appear as `set`."""

    id: UUID = Field(description="Identifies duplicates where two exports overlap.")
    at: datetime
    tenant: str | None = Field(examples=["shop"], description="Null for objects of the platform.")
    actor: str = Field(
        examples=["key 3f9a1c5e7b20 (ci)"],
        description="`key PREFIX (NAME)`, `oidc SUBJECT`, `bootstrap key`, `environment`, `keda INSTANCE/NAMESPACE` or "
        "`housekeeping`.",
    )
    action: str = Field(examples=["monitor.update"])
    object: str = Field(examples=["monitor/orders"])
    origin: str | None = Field(
        examples=["10.1.2.3"], description="Address of the client; null for changes without a request."
    )
    before: dict[str, Any] | None = Field(description="Null if the object was created.")
    after: dict[str, Any] | None = Field(description="Null if the object was deleted.")


def _read_filter(
    *,
    actor: Annotated[
        Line | None, Query(description="Who changed it, as in `key 3f9a1c5e7b20*`; a trailing `*` matches any suffix.")
    ] = None,
    action: Annotated[Line | None, Query(description="As in `monitor.update`, or `monitor.*`.")] = None,
    object_: Annotated[
        Line | None, Query(alias="object", description="As in `monitor/orders`, or `monitor/*`.")
    ] = None,
    since: Annotated[QueryTime | None, Query(description="Start of the time range, inclusive.")] = None,
    until: Annotated[QueryTime | None, Query(description="End of the time range, exclusive.")] = None,
) -> AuditFilter:
    return AuditFilter(actor, action, object_, since, until)


def _read_platform_filter(
    criteria: Annotated[AuditFilter, Depends(_read_filter)],
    tenant: Annotated[Name | None, Query(description="Only events of this tenant.")] = None,
) -> AuditFilter:
    return replace(criteria, tenant=tenant)


Criteria = Annotated[AuditFilter, Depends(_read_filter)]
PlatformCriteria = Annotated[AuditFilter, Depends(_read_platform_filter)]


@router.get(_TENANT_PATH, summary="List the audit events of a tenant, the newest first")
async def list_audit(tenant: TenantAdmin, criteria: Criteria, page_request: PageQuery) -> Listing[AuditEventOut]:
    async with tenant.session() as session:
        page = await audit.list_page(session, criteria, page_request)
    return serialize_page(page, AuditEventOut.from_row)


@router.get(
    _TENANT_PATH + "/export",
    summary="Export the audit events of a tenant as lines of JSON",
    response_class=StreamingResponse,
    responses=_STREAM,
)
async def export_audit(tenant: TenantAdmin, criteria: Criteria) -> StreamingResponse:
    return StreamingResponse(await export_lines(tenant, criteria), media_type=_LINES)


@router.get(_PLATFORM_PATH, summary="List the audit events of the platform and all tenants")
async def list_platform_audit(
    platform: Platform, criteria: PlatformCriteria, page_request: PageQuery
) -> Listing[AuditEventOut]:
    async with platform.session() as session:
        page = await audit.list_page(session, criteria, page_request)
    return serialize_page(page, AuditEventOut.from_row)


@router.get(
    _PLATFORM_PATH + "/export",
    summary="Export the audit events of the platform and all tenants as lines of JSON",
    response_class=StreamingResponse,
    responses=_STREAM,
)
async def export_platform_audit(platform: Platform, criteria: PlatformCriteria) -> StreamingResponse:
    return StreamingResponse(await export_lines(platform, criteria), media_type=_LINES)


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
        yield b"".join(AuditEventOut.from_row(row).model_dump_json(by_alias=True).encode() + b"\n" for row in rows)
        rows = await _read_batch(access, criteria, rows[-1])


async def _read_batch(access: TenantAccess | ScopeAccess, criteria: AuditFilter, last: Row | None) -> Sequence[Row]:
    async with access.session() as session:
        return await audit.read_after(session, criteria, last)
