"""The audit log of a tenant, or of the platform and all tenants: page by page, or as lines of JSON."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse
from pydantic import AwareDatetime

from lagscale.store.registry import audit
from lagscale.store.registry.audit import AuditFilter
from services.api.audit.export import export_lines
from services.api.audit.schemas import AuditEventOut, serialize_event
from services.api.deps import PageQuery, Platform, TenantAdmin
from services.api.schemas import Line, Listing, Name, serialize_page

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


def _read_filter(
    *,
    actor: Annotated[
        Line | None, Query(description="Who changed it, as in `key 3f9a1c5e7b20*`; a trailing `*` matches any suffix.")
    ] = None,
    action: Annotated[Line | None, Query(description="As in `monitor.update`, or `monitor.*`.")] = None,
    object_: Annotated[
        Line | None, Query(alias="object", description="As in `monitor/orders`, or `monitor/*`.")
    ] = None,
    since: Annotated[AwareDatetime | None, Query(description="Start of the time range, inclusive.")] = None,
    until: Annotated[AwareDatetime | None, Query(description="End of the time range, exclusive.")] = None,
) -> AuditFilter:
    return AuditFilter(actor, action, object_, since, until)


def _read_platform_filter(
    criteria: Annotated[AuditFilter, Depends(_read_filter)],
    tenant: Annotated[Name | None, Query(description="Only events of this tenant.")] = None,
) -> AuditFilter:
    return AuditFilter(criteria.actor, criteria.action, criteria.object, criteria.since, criteria.until, tenant)


Criteria = Annotated[AuditFilter, Depends(_read_filter)]
PlatformCriteria = Annotated[AuditFilter, Depends(_read_platform_filter)]


@router.get(_TENANT_PATH, summary="List the audit events of a tenant, the newest first")
async def list_audit(tenant: TenantAdmin, criteria: Criteria, page_request: PageQuery) -> Listing[AuditEventOut]:
    async with tenant.session() as session:
        page = await audit.list_page(session, criteria, page_request)
    return serialize_page(page, serialize_event)


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
    return serialize_page(page, serialize_event)


@router.get(
    _PLATFORM_PATH + "/export",
    summary="Export the audit events of the platform and all tenants as lines of JSON",
    response_class=StreamingResponse,
    responses=_STREAM,
)
async def export_platform_audit(platform: Platform, criteria: PlatformCriteria) -> StreamingResponse:
    return StreamingResponse(await export_lines(platform, criteria), media_type=_LINES)
