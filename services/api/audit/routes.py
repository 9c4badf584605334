"""The audit of a tenant, and of the platform with all tenants: page by page, or as lines of JSON."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import AwareDatetime

from lagscale.store.registry.audit_trail import Filter
from services.api.audit.trail import AuditEventOut, AuditTrail, event_of
from services.api.auth.access import PlatformAdmin, TenantAdmin
from services.api.deps import Tenant, WantedPage
from services.api.schemas import Line, Listing, Name

router = APIRouter(tags=["audit"])
_OF_TENANT = "/v1/tenants/{tenant}/audit"
_OF_PLATFORM = "/v1/audit"
_LINES = "application/x-ndjson"
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "One event a line, the oldest first.",
        "content": {_LINES: {"schema": {"type": "string"}}},
    }
}


def _filter(
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
) -> Filter:
    return Filter(actor, action, object_, since, until)


def _platform_filter(
    chosen: Annotated[Filter, Depends(_filter)],
    tenant: Annotated[Name | None, Query(description="Only what is this tenant's.")] = None,
) -> Filter:
    return Filter(chosen.actor, chosen.action, chosen.object, chosen.since, chosen.until, tenant)


def _trail(request: Request) -> AuditTrail:
    return AuditTrail(request.app.state.database)


Trail = Annotated[AuditTrail, Depends(_trail)]
Chosen = Annotated[Filter, Depends(_filter)]
PlatformChosen = Annotated[Filter, Depends(_platform_filter)]


@router.get(_OF_TENANT, summary="List who changed what of a tenant, the newest first")
async def list_audit(
    caller: TenantAdmin, trail: Trail, tenant: Tenant, chosen: Chosen, wanted: WantedPage
) -> Listing[AuditEventOut]:
    page = await trail.page(caller.scope, tenant, chosen, wanted)
    return Listing(items=[event_of(row) for row in page.rows], next=page.after)


@router.get(
    _OF_TENANT + "/export",
    summary="Export who changed what of a tenant as lines of JSON",
    response_class=StreamingResponse,
    responses=_STREAM,
)
async def export_audit(caller: TenantAdmin, trail: Trail, tenant: Tenant, chosen: Chosen) -> StreamingResponse:
    return StreamingResponse(await trail.lines(caller.scope, tenant, chosen), media_type=_LINES)


@router.get(_OF_PLATFORM, summary="List who changed what, of all tenants and of the platform")
async def list_platform_audit(
    caller: PlatformAdmin, trail: Trail, chosen: PlatformChosen, wanted: WantedPage
) -> Listing[AuditEventOut]:
    page = await trail.page(caller.scope, None, chosen, wanted)
    return Listing(items=[event_of(row) for row in page.rows], next=page.after)


@router.get(
    _OF_PLATFORM + "/export",
    summary="Export who changed what as lines of JSON, of all tenants and of the platform",
    response_class=StreamingResponse,
    responses=_STREAM,
)
async def export_platform_audit(caller: PlatformAdmin, trail: Trail, chosen: PlatformChosen) -> StreamingResponse:
    return StreamingResponse(await trail.lines(caller.scope, None, chosen), media_type=_LINES)
