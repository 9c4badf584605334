"""The brake over REST: freezes of a tenant, of a cluster and of a monitor."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from lagscale.store.registry.freezes import CLUSTER, MONITOR, TENANT, FreezeSubject
from lagscale.store.registry.versions import WriteResult
from services.api.auth.authenticator import TenantAdmin, Viewer
from services.api.deps import PageQuery, Tenant, check_name
from services.api.freezes.answer import Freezing, serialize_freeze
from services.api.freezes.schemas import FreezeIn, FreezeOut
from services.api.schemas import Listing

router = APIRouter(prefix="/v1/tenants/{tenant}", tags=["freezes"])


def _get_freezing(request: Request) -> Freezing:
    part: Freezing = request.app.state.freezing
    return part


def _target_tenant() -> FreezeSubject:
    return FreezeSubject(TENANT)


def _target_cluster(cluster: str) -> FreezeSubject:
    return FreezeSubject(CLUSTER, check_name(cluster))


def _target_monitor(monitor: str) -> FreezeSubject:
    return FreezeSubject(MONITOR, check_name(monitor))


FreezingPart = Annotated[Freezing, Depends(_get_freezing)]
TenantTarget = Annotated[FreezeSubject, Depends(_target_tenant)]
ClusterTarget = Annotated[FreezeSubject, Depends(_target_cluster)]
MonitorTarget = Annotated[FreezeSubject, Depends(_target_monitor)]
_CREATED: dict[int | str, dict[str, Any]] = {201: {"model": FreezeOut}}


@router.get("/freezes", summary="List a tenant's freezes that have not ended")
async def list_freezes(
    caller: Viewer, freezing: FreezingPart, tenant: Tenant, page_request: PageQuery
) -> Listing[FreezeOut]:
    page = await freezing.list_page(caller.scope, tenant, page_request)
    return Listing(items=[serialize_freeze(row) for row in page.rows], next=page.after)


@router.get("/freeze", summary="Show the freeze of a whole tenant")
async def show_tenant_freeze(caller: Viewer, freezing: FreezingPart, tenant: Tenant, target: TenantTarget) -> FreezeOut:
    return serialize_freeze(await freezing.show(caller.scope, tenant, target))


@router.put("/freeze", responses=_CREATED, summary="Freeze all monitors of a tenant")
async def freeze_tenant(
    *,
    caller: TenantAdmin,
    freezing: FreezingPart,
    tenant: Tenant,
    target: TenantTarget,
    given: FreezeIn,
    response: Response,
) -> FreezeOut:
    return serialize_outcome(response, await freezing.put(caller.scope, tenant, target, given))


@router.delete("/freeze", status_code=204, summary="End the freeze of a whole tenant")
async def unfreeze_tenant(caller: TenantAdmin, freezing: FreezingPart, tenant: Tenant, target: TenantTarget) -> None:
    await freezing.remove(caller.scope, tenant, target)


@router.get("/clusters/{cluster}/freeze", summary="Show the freeze of a cluster")
async def show_cluster_freeze(
    caller: Viewer, freezing: FreezingPart, tenant: Tenant, target: ClusterTarget
) -> FreezeOut:
    return serialize_freeze(await freezing.show(caller.scope, tenant, target))


@router.put("/clusters/{cluster}/freeze", responses=_CREATED, summary="Freeze all monitors of a cluster")
async def freeze_cluster(
    *,
    caller: TenantAdmin,
    freezing: FreezingPart,
    tenant: Tenant,
    target: ClusterTarget,
    given: FreezeIn,
    response: Response,
) -> FreezeOut:
    return serialize_outcome(response, await freezing.put(caller.scope, tenant, target, given))


@router.delete("/clusters/{cluster}/freeze", status_code=204, summary="End the freeze of a cluster")
async def unfreeze_cluster(caller: TenantAdmin, freezing: FreezingPart, tenant: Tenant, target: ClusterTarget) -> None:
    await freezing.remove(caller.scope, tenant, target)


@router.get("/monitors/{monitor}/freeze", summary="Show the freeze of a monitor")
async def show_monitor_freeze(
    caller: Viewer, freezing: FreezingPart, tenant: Tenant, target: MonitorTarget
) -> FreezeOut:
    return serialize_freeze(await freezing.show(caller.scope, tenant, target))


@router.put("/monitors/{monitor}/freeze", responses=_CREATED, summary="Freeze a monitor: KEDA gets what was known")
async def freeze_monitor(
    *,
    caller: TenantAdmin,
    freezing: FreezingPart,
    tenant: Tenant,
    target: MonitorTarget,
    given: FreezeIn,
    response: Response,
) -> FreezeOut:
    return serialize_outcome(response, await freezing.put(caller.scope, tenant, target, given))


@router.delete("/monitors/{monitor}/freeze", status_code=204, summary="End the freeze of a monitor")
async def unfreeze_monitor(caller: TenantAdmin, freezing: FreezingPart, tenant: Tenant, target: MonitorTarget) -> None:
    await freezing.remove(caller.scope, tenant, target)


def serialize_outcome(response: Response, outcome: WriteResult) -> FreezeOut:
    """The freeze, and whether it was created."""
    response.status_code = 201 if outcome.created else 200
    return serialize_freeze(outcome.row)
