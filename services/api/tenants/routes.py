"""/v1/tenants: the platform's administrators write, a tenant's keys read their own."""

from __future__ import annotations

from fastapi import APIRouter, Response

from lagscale.store.registry import audit, monitors, tenants
from lagscale.store.registry.monitors import PolicyViolation
from lagscale.store.registry.session import as_platform, as_tenant, check_precondition
from services.api.deps import (
    AnyCaller,
    CachedVersions,
    DryRun,
    IfMatch,
    PageQuery,
    Platform,
    PlatformAdmin,
    TickSeconds,
    Viewer,
    match_name,
    require_name,
    set_etag,
    set_status_and_etag,
)
from services.api.schemas import Listing, serialize_page
from services.api.tenants.schemas import (
    PolicyWarning,
    TenantIn,
    TenantOut,
    build_tenant_columns,
    serialize_policy_warnings,
    serialize_tenant,
)

router = APIRouter(prefix="/v1/tenants", tags=["tenants"])


@router.get("", summary="List tenants")
async def list_tenants(caller: AnyCaller, page_request: PageQuery) -> Listing[TenantOut]:
    async with caller.session() as session:
        page = await tenants.list_page(session, page_request)
    return serialize_page(page, serialize_tenant)


@router.post("", status_code=201, summary="Create a tenant")
async def create_tenant(
    platform: Platform, given: TenantIn, tick_seconds: TickSeconds, response: Response
) -> TenantOut:
    name, values = require_name(given.name), build_tenant_columns(given, tick_seconds)
    async with platform.session() as session:
        outcome = await tenants.create(session, name, values)
    set_status_and_etag(response, outcome)
    return serialize_tenant(outcome.row)


@router.get(
    "/{tenant}",
    response_model=TenantOut,
    responses={304: {"description": "The version in `If-None-Match` is current."}},
    summary="Show a tenant",
)
async def show_tenant(tenant: Viewer, cached_versions: CachedVersions, response: Response) -> TenantOut | Response:
    # Only here: the version of a cluster or a monitor does not cover its state, which is a part of the response.
    async with tenant.session() as session:
        row = session.tenant
    if row["version"] in cached_versions:
        unchanged = Response(status_code=304)
        set_etag(unchanged, row["version"])
        return unchanged
    set_etag(response, row["version"])
    return serialize_tenant(row)


@router.put("/{tenant}", responses={201: {"model": TenantOut}}, summary="Create or replace a tenant")
async def put_tenant(
    *,
    tenant: PlatformAdmin,
    given: TenantIn,
    precondition: IfMatch,
    tick_seconds: TickSeconds,
    dry_run: DryRun = False,
    response: Response,
) -> TenantOut:
    name, values = match_name(tenant.name, given.name), build_tenant_columns(given, tick_seconds)
    violations: list[PolicyViolation] = []
    async with tenant.platform_session(dry_run=dry_run) as session:
        outcome = await tenants.put(session, name, values, precondition)
        if tenants.changes_rules(outcome):
            tenant_session = await as_tenant(session, outcome.row)
            violations = await monitors.apply_tenant_rules(tenant_session, tick_seconds)
    set_status_and_etag(response, outcome)
    return serialize_tenant(outcome.row, violations)


@router.delete("/{tenant}", status_code=204, summary="Delete an empty tenant")
async def delete_tenant(tenant: PlatformAdmin, precondition: IfMatch) -> None:
    async with tenant.session(lock=True) as session:
        check_precondition(session.tenant, precondition)
        await tenants.remove(session)
        # The tenant's own audit events were deleted with it, so this one is the platform's.
        await audit.record(await as_platform(session), "tenant.delete", f"tenant/{tenant.name}", session.tenant, None)


@router.get("/{tenant}/policy-warnings", summary="List monitors that violate the tenant's rules for policies")
async def list_policy_warnings(
    tenant: Viewer, page_request: PageQuery, tick_seconds: TickSeconds
) -> Listing[PolicyWarning]:
    async with tenant.session() as session:
        page = await monitors.list_page(session, page_request)
        violations = monitors.find_violations(session, page.rows, tick_seconds)
    return Listing(items=list(serialize_policy_warnings(violations)), next=page.after)
