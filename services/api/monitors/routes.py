"""/v1/tenants/{tenant}/monitors: create, read, replace, delete and restore monitors, one by one or in bulk."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from lagscale.domain.tenancy import MAX_GROUP_BYTES
from lagscale.store.registry import monitors
from lagscale.store.registry.monitor_spec import build_spec, read_draft
from lagscale.store.registry.monitors import MonitorFilter
from services.api.deps import (
    DryRun,
    IfMatch,
    PageQuery,
    TenantAdmin,
    TickSeconds,
    Viewer,
    check_name,
    match_name,
    part,
    require_name,
    set_etag,
    set_status_and_etag,
)
from services.api.monitors.bulk import apply_bulk_changes
from services.api.monitors.drafts import parse_draft
from services.api.monitors.schemas import ChangesIn, ChangesOut, MonitorIn, MonitorOut, ValidationOut, serialize_monitor
from services.api.monitors.validator import MonitorValidator
from services.api.schemas import Listing, serialize_page

router = APIRouter(prefix="/v1/tenants/{tenant}/monitors", tags=["monitors"])

ValidatorPart = Annotated[MonitorValidator, part("validator")]
RunValidation = Annotated[bool, Query(alias="validate", description="Validate on the cluster and return warnings.")]


def _read_filters(
    *,
    cluster: Annotated[str | None, Query(max_length=63, description="Monitors of this cluster.")] = None,
    group: Annotated[
        str | None,
        Query(alias="consumerGroup", max_length=MAX_GROUP_BYTES, description="Monitors of this consumer group."),
    ] = None,
    auto: Annotated[
        bool | None, Query(alias="autoRegistered", description="Whether a ScaledObject registered it.")
    ] = None,
    failing: Annotated[
        bool | None, Query(description="Whether the state of its cluster, topic discovery or a target is not `ok`.")
    ] = None,
    deleted: Annotated[bool, Query(description="Deleted monitors that can be restored, instead of live ones.")] = False,
) -> MonitorFilter:
    # PostgreSQL stores no NUL, so no object has such a name.
    texts = [text.replace("\0", "\ufffd") if text else text for text in (cluster, group)]
    return MonitorFilter(texts[0], texts[1], auto, failing, deleted)


FiltersQuery = Annotated[MonitorFilter, Depends(_read_filters)]


@router.get("", summary="List the monitors of a tenant")
async def list_monitors(tenant: Viewer, page_request: PageQuery, filters: FiltersQuery) -> Listing[MonitorOut]:
    async with tenant.session() as session:
        page = await monitors.list_page(session, page_request, filters)
    return serialize_page(page, serialize_monitor)


@router.post("", status_code=201, summary="Create a monitor")
async def create_monitor(
    *,
    tenant: TenantAdmin,
    given: MonitorIn,
    tick_seconds: TickSeconds,
    validator: ValidatorPart,
    run_validation: RunValidation = True,
    response: Response,
) -> MonitorOut:
    draft = parse_draft(require_name(given.name), given)
    # The lock keeps the tenant's rules as they are until the end; so in every change of a monitor.
    async with tenant.session(lock=True) as session:
        outcome = await monitors.create(session, build_spec(draft, session.tenant, tick_seconds))
        row = await monitors.read_by_name(session, draft.name)
    set_status_and_etag(response, outcome, row)
    body = serialize_monitor(row)
    if run_validation:
        body.warnings = await validator.find_warnings(tenant, given)
    return body


@router.post("/bulk", summary="Put and delete many monitors, all or none")
async def change_monitors(
    tenant: TenantAdmin, given: ChangesIn, tick_seconds: TickSeconds, *, dry_run: DryRun = False
) -> ChangesOut:
    return await apply_bulk_changes(tenant, given, tick_seconds, dry_run=dry_run)


@router.get("/{monitor}", summary="Show a monitor")
async def show_monitor(tenant: Viewer, monitor: str, response: Response) -> MonitorOut:
    check_name(monitor)
    async with tenant.session() as session:
        row = await monitors.read_by_name(session, monitor)
    set_etag(response, row["version"])
    return serialize_monitor(row)


@router.put("/{monitor}", responses={201: {"model": MonitorOut}}, summary="Create or replace a monitor")
async def put_monitor(
    *,
    tenant: TenantAdmin,
    monitor: str,
    given: MonitorIn,
    precondition: IfMatch,
    tick_seconds: TickSeconds,
    validator: ValidatorPart,
    run_validation: RunValidation = True,
    dry_run: DryRun = False,
    response: Response,
) -> MonitorOut:
    draft = parse_draft(match_name(monitor, given.name), given)
    async with tenant.session(lock=True, dry_run=dry_run) as session:
        outcome = await monitors.put_draft(session, draft, tick_seconds, precondition)
        row = await monitors.read_by_name(session, monitor)
    set_status_and_etag(response, outcome, row)
    body = serialize_monitor(row)
    if run_validation:
        body.warnings = await validator.find_warnings(tenant, given)
    return body


@router.delete("/{monitor}", status_code=204, summary="Delete a monitor; it can be restored for 30 days")
async def delete_monitor(tenant: TenantAdmin, monitor: str, precondition: IfMatch) -> None:
    check_name(monitor)
    async with tenant.session() as session:
        await monitors.remove(session, monitor, precondition)


@router.post("/{monitor}/restore", summary="Restore the last deleted monitor of this name")
async def restore_monitor(
    tenant: TenantAdmin, monitor: str, tick_seconds: TickSeconds, response: Response
) -> MonitorOut:
    check_name(monitor)
    async with tenant.session(lock=True) as session:
        deleted = await monitors.lock_deleted(session, monitor)
        spec = build_spec(read_draft(deleted), session.tenant, tick_seconds)
        outcome = await monitors.restore(session, deleted, spec)
        row = await monitors.read_by_name(session, monitor)
    set_status_and_etag(response, outcome, row)
    return serialize_monitor(row)


@router.post("/validate", summary="Validate a monitor without storing it")
async def validate_monitor(tenant: TenantAdmin, validator: ValidatorPart, given: MonitorIn) -> ValidationOut:
    return await validator.validate(tenant, given)
