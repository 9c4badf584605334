"""/v1/tenants/{tenant}/monitors, and what was measured and judged of each."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import AwareDatetime

from lagscale.store.registry.history import SampleRange
from lagscale.store.registry.monitors import MonitorFilter
from services.api.auth.authenticator import TenantAdmin, Viewer
from services.api.deps import (
    OperationsPart,
    PageQuery,
    Tenant,
    VerdictReaderPart,
    check_name,
    set_etag,
    set_status_and_etag,
)
from services.api.dry_run import SUPPORTS_DRY_RUN
from services.api.preconditions import Precondition
from services.api.schemas import Listing, MonitorIn, MonitorOut
from services.api.serializers import serialize_monitor
from services.api.validation.routes import ValidationPart, add_monitor_warnings
from services.api.verdicts.schemas import MonitorHealth, RoundOut, VerdictOut

router = APIRouter(prefix="/v1/tenants/{tenant}/monitors", tags=["monitors"])

From = Annotated[AwareDatetime | None, Query(alias="from", description="The first instant, included.")]
To = Annotated[AwareDatetime | None, Query(description="The last instant, excluded.")]


def _read_filters(
    *,
    cluster: Annotated[str | None, Query(max_length=63, description="Of this cluster.")] = None,
    group: Annotated[str | None, Query(alias="consumerGroup", max_length=255, description="Of this group.")] = None,
    auto: Annotated[bool | None, Query(alias="autoRegistered", description="Registered by a ScaledObject.")] = None,
    failing: Annotated[
        bool | None, Query(description="The state of its cluster, its topics or its targets is another than `ok`.")
    ] = None,
    deleted: Annotated[bool, Query(description="The deleted ones that are still kept, not the live ones.")] = False,
) -> MonitorFilter:
    # PostgreSQL stores no NUL, so nothing has such a name.
    texts = [text.replace("\0", "\ufffd") if text else text for text in (cluster, group)]
    return MonitorFilter(texts[0], texts[1], auto, failing, deleted)


FiltersQuery = Annotated[MonitorFilter, Depends(_read_filters)]


@router.get("", summary="List a tenant's monitors")
async def list_monitors(
    caller: Viewer, operations: OperationsPart, tenant: Tenant, page_request: PageQuery, filters: FiltersQuery
) -> Listing[MonitorOut]:
    page = await operations.list_monitors(caller.scope, tenant, page_request, filters)
    return Listing(items=[serialize_monitor(row) for row in page.rows], next=page.after)


@router.post("", status_code=201, summary="Create a monitor")
async def create_monitor(
    *,
    caller: TenantAdmin,
    operations: OperationsPart,
    tenant: Tenant,
    given: MonitorIn,
    validation: ValidationPart,
    response: Response,
) -> MonitorOut:
    outcome = await operations.create_monitor(caller.scope, tenant, given)
    set_status_and_etag(response, outcome)
    return await add_monitor_warnings(validation, caller.scope, tenant, given, serialize_monitor(outcome.row))


@router.get("/{monitor}", summary="Show a monitor")
async def show_monitor(
    caller: Viewer, operations: OperationsPart, tenant: Tenant, monitor: str, response: Response
) -> MonitorOut:
    row = await operations.monitor(caller.scope, tenant, check_name(monitor))
    set_etag(response, row["version"])
    return serialize_monitor(row)


@router.put(
    "/{monitor}",
    responses={201: {"model": MonitorOut}},
    summary="Create a monitor, or make it so",
    dependencies=[SUPPORTS_DRY_RUN],
)
async def put_monitor(
    *,
    caller: TenantAdmin,
    operations: OperationsPart,
    tenant: Tenant,
    monitor: str,
    given: MonitorIn,
    precondition: Precondition,
    validation: ValidationPart,
    response: Response,
) -> MonitorOut:
    outcome = await operations.put_monitor(caller.scope, tenant, check_name(monitor), given, precondition=precondition)
    set_status_and_etag(response, outcome)
    return await add_monitor_warnings(validation, caller.scope, tenant, given, serialize_monitor(outcome.row))


@router.delete("/{monitor}", status_code=204, summary="Delete a monitor; it can be restored for 30 days")
async def delete_monitor(
    caller: TenantAdmin, operations: OperationsPart, tenant: Tenant, monitor: str, precondition: Precondition
) -> None:
    await operations.delete_monitor(caller.scope, tenant, check_name(monitor), precondition)


@router.post("/{monitor}/restore", summary="Bring back the monitor of this name that was deleted last")
async def restore_monitor(
    caller: TenantAdmin, operations: OperationsPart, tenant: Tenant, monitor: str, response: Response
) -> MonitorOut:
    outcome = await operations.restore_monitor(caller.scope, tenant, check_name(monitor))
    set_status_and_etag(response, outcome)
    return serialize_monitor(outcome.row)


@router.get("/{monitor}/verdict", summary="Judge a monitor now, with the evidence")
async def show_verdict(caller: Viewer, verdict_reader: VerdictReaderPart, tenant: Tenant, monitor: str) -> VerdictOut:
    return await verdict_reader.verdict(caller.scope, tenant, check_name(monitor))


@router.get("/{monitor}/samples", summary="List a monitor's samples, the newest round first")
async def list_samples(
    *,
    caller: Viewer,
    verdict_reader: VerdictReaderPart,
    tenant: Tenant,
    monitor: str,
    page_request: PageQuery,
    begin: From = None,
    to: To = None,
) -> Listing[RoundOut]:
    span = SampleRange(page_request.limit, begin, to)
    return await verdict_reader.samples(caller.scope, tenant, check_name(monitor), span, page_request.after)


@router.get("/{monitor}/health", summary="Show the states of a monitor's cluster and targets")
async def show_monitor_health(
    caller: Viewer, verdict_reader: VerdictReaderPart, tenant: Tenant, monitor: str
) -> MonitorHealth:
    return await verdict_reader.monitor_health(caller.scope, tenant, check_name(monitor))
