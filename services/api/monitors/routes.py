"""/v1/tenants/{tenant}/monitors, and what was measured and judged of each."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import AwareDatetime

from lagscale.store.registry.monitors import Filters
from lagscale.store.registry.observations import Span
from services.api.auth.access import TenantAdmin, Viewer
from services.api.deps import (
    EvidencePart,
    OperationsPart,
    Tenant,
    WantedPage,
    existing,
    tag,
    tell,
)
from services.api.dry_run import CAN_TRY
from services.api.preconditions import Seen
from services.api.schemas import Listing, MonitorIn, MonitorOut
from services.api.serializers import monitor_of
from services.api.validation.routes import Validating, warned
from services.api.verdicts.schemas import MonitorHealth, RoundOut, VerdictOut

router = APIRouter(prefix="/v1/tenants/{tenant}/monitors", tags=["monitors"])

From = Annotated[AwareDatetime | None, Query(alias="from", description="The first instant, included.")]
To = Annotated[AwareDatetime | None, Query(description="The last instant, excluded.")]


def _only(
    *,
    cluster: Annotated[str | None, Query(max_length=63, description="Of this cluster.")] = None,
    group: Annotated[str | None, Query(alias="consumerGroup", max_length=255, description="Of this group.")] = None,
    auto: Annotated[bool | None, Query(alias="autoRegistered", description="Registered by a ScaledObject.")] = None,
    failing: Annotated[
        bool | None, Query(description="The state of its cluster, its topics or its targets is another than `ok`.")
    ] = None,
    deleted: Annotated[bool, Query(description="The deleted ones that are still kept, not the live ones.")] = False,
) -> Filters:
    # PostgreSQL stores no NUL, so nothing has such a name.
    texts = [text.replace("\0", "\ufffd") if text else text for text in (cluster, group)]
    return Filters(texts[0], texts[1], auto, failing, deleted)


Only = Annotated[Filters, Depends(_only)]


@router.get("", summary="List a tenant's monitors")
async def list_monitors(
    caller: Viewer, operations: OperationsPart, tenant: Tenant, wanted: WantedPage, only: Only
) -> Listing[MonitorOut]:
    page = await operations.list_monitors(caller.scope, tenant, wanted, only)
    return Listing(items=[monitor_of(row) for row in page.rows], next=page.after)


@router.post("", status_code=201, summary="Create a monitor")
async def create_monitor(
    *,
    caller: TenantAdmin,
    operations: OperationsPart,
    tenant: Tenant,
    given: MonitorIn,
    validation: Validating,
    response: Response,
) -> MonitorOut:
    outcome = await operations.create_monitor(caller.scope, tenant, given)
    tell(response, outcome)
    return await warned(validation, caller.scope, tenant, given, monitor_of(outcome.row))


@router.get("/{monitor}", summary="Show a monitor")
async def show_monitor(
    caller: Viewer, operations: OperationsPart, tenant: Tenant, monitor: str, response: Response
) -> MonitorOut:
    row = await operations.monitor(caller.scope, tenant, existing(monitor))
    tag(response, row["version"])
    return monitor_of(row)


@router.put(
    "/{monitor}",
    responses={201: {"model": MonitorOut}},
    summary="Create a monitor, or make it so",
    dependencies=[CAN_TRY],
)
async def put_monitor(
    *,
    caller: TenantAdmin,
    operations: OperationsPart,
    tenant: Tenant,
    monitor: str,
    given: MonitorIn,
    seen: Seen,
    validation: Validating,
    response: Response,
) -> MonitorOut:
    outcome = await operations.put_monitor(caller.scope, tenant, existing(monitor), given, seen=seen)
    tell(response, outcome)
    return await warned(validation, caller.scope, tenant, given, monitor_of(outcome.row))


@router.delete("/{monitor}", status_code=204, summary="Delete a monitor; it can be restored for 30 days")
async def delete_monitor(
    caller: TenantAdmin, operations: OperationsPart, tenant: Tenant, monitor: str, seen: Seen
) -> None:
    await operations.delete_monitor(caller.scope, tenant, existing(monitor), seen)


@router.post("/{monitor}/restore", summary="Bring back the monitor of this name that was deleted last")
async def restore_monitor(
    caller: TenantAdmin, operations: OperationsPart, tenant: Tenant, monitor: str, response: Response
) -> MonitorOut:
    outcome = await operations.restore_monitor(caller.scope, tenant, existing(monitor))
    tell(response, outcome)
    return monitor_of(outcome.row)


@router.get("/{monitor}/verdict", summary="Judge a monitor now, with the evidence")
async def show_verdict(caller: Viewer, evidence: EvidencePart, tenant: Tenant, monitor: str) -> VerdictOut:
    return await evidence.verdict(caller.scope, tenant, existing(monitor))


@router.get("/{monitor}/samples", summary="List a monitor's samples, the newest round first")
async def list_samples(
    *,
    caller: Viewer,
    evidence: EvidencePart,
    tenant: Tenant,
    monitor: str,
    wanted: WantedPage,
    begin: From = None,
    to: To = None,
) -> Listing[RoundOut]:
    span = Span(wanted.limit, begin, to)
    return await evidence.samples(caller.scope, tenant, existing(monitor), span, wanted.after)


@router.get("/{monitor}/health", summary="Show the states of a monitor's cluster and targets")
async def show_monitor_health(caller: Viewer, evidence: EvidencePart, tenant: Tenant, monitor: str) -> MonitorHealth:
    return await evidence.monitor_health(caller.scope, tenant, existing(monitor))
