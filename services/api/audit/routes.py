"""The audit of a tenant, and of the platform with all tenants: page by page, or as lines of JSON."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import AwareDatetime

from lagscale.store.registry.audit import AuditFilter
from services.api.audit.export import AuditEventOut, AuditTrail, serialize_event
from services.api.auth.authenticator import PlatformAdmin, TenantAdmin
from services.api.deps import PageQuery, Tenant
from services.api.schemas import Line, Listing, Name

router = APIRouter(tags=["audit"])
_TENANT_PATH = "/v1/tenants/{tenant}/audit"
_PLATFORM_PATH = "/v1/audit"
_LINES = "application/x-ndjson"
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "One event a line, the oldest first.",
        "content": {_LINES: {"schema": {"type": "string"}}},
    }
}


def _read_criteria(
    *,
    actor: Annotated[
        Line | None, Query(description="Who, as in `key 3f9a1c5e7b20*`; `*` at the end: begins so.")
    ] = None,
    action: Annotated[Line | None, Query(description="As in `monitor.update`, or `monitor.*`.")] = None,
    object_: Annotated[
        Line | None, Query(alias="object", description="As in `monitor/orders`, or `monitor/*`.")
    ] = None,
    since: Annotated[AwareDatetime | None, Query(description="The first instant, included.")] = None,
    until: Annotated[AwareDatetime | None, Query(description="The last instant, excluded.")] = None,
) -> AuditFilter:
    return AuditFilter(actor, action, object_, since, until)


def _read_platform_criteria(
    criteria: Annotated[AuditFilter, Depends(_read_criteria)],
    tenant: Annotated[Name | None, Query(description="Only what is this tenant's.")] = None,
) -> AuditFilter:
    return AuditFilter(criteria.actor, criteria.action, criteria.object, criteria.since, criteria.until, tenant)


def _build_trail(request: Request) -> AuditTrail:
    return AuditTrail(request.app.state.database)


Trail = Annotated[AuditTrail, Depends(_build_trail)]
Criteria = Annotated[AuditFilter, Depends(_read_criteria)]
PlatformCriteria = Annotated[AuditFilter, Depends(_read_platform_criteria)]


@router.get(_TENANT_PATH, summary="List who changed what of a tenant, the newest first")
async def list_audit(
    caller: TenantAdmin, trail: Trail, tenant: Tenant, criteria: Criteria, page_request: PageQuery
) -> Listing[AuditEventOut]:
    page = await trail.page(caller.scope, tenant, criteria, page_request)
    return Listing(items=[serialize_event(row) for row in page.rows], next=page.after)


@router.get(
    _TENANT_PATH + "/export",
    summary="Export who changed what of a tenant as lines of JSON",
    response_class=StreamingResponse,
    responses=_STREAM,
)
async def export_audit(caller: TenantAdmin, trail: Trail, tenant: Tenant, criteria: Criteria) -> StreamingResponse:
    return StreamingResponse(await trail.lines(caller.scope, tenant, criteria), media_type=_LINES)


@router.get(_PLATFORM_PATH, summary="List who changed what, of all tenants and of the platform")
async def list_platform_audit(
    caller: PlatformAdmin, trail: Trail, criteria: PlatformCriteria, page_request: PageQuery
) -> Listing[AuditEventOut]:
    page = await trail.page(caller.scope, None, criteria, page_request)
    return Listing(items=[serialize_event(row) for row in page.rows], next=page.after)


@router.get(
    _PLATFORM_PATH + "/export",
    summary="Export who changed what as lines of JSON, of all tenants and of the platform",
    response_class=StreamingResponse,
    responses=_STREAM,
)
async def export_platform_audit(caller: PlatformAdmin, trail: Trail, criteria: PlatformCriteria) -> StreamingResponse:
    return StreamingResponse(await trail.lines(caller.scope, None, criteria), media_type=_LINES)
