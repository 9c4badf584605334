"""The brake over REST: freezes of a tenant, of a cluster and of a monitor."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from lagscale.store.registry.freezes import CLUSTER, MONITOR, TENANT, Thing
from lagscale.store.registry.versions import Outcome
from services.api.auth.access import TenantAdmin, Viewer
from services.api.deps import Tenant, WantedPage, existing
from services.api.freezes.freezing import Freezing, freeze_of
from services.api.freezes.schemas import FreezeIn, FreezeOut
from services.api.schemas import Listing

router = APIRouter(prefix="/v1/tenants/{tenant}", tags=["freezes"])


def _freezing(request: Request) -> Freezing:
    found: Freezing = request.app.state.freezing
    return found


def _whole() -> Thing:
    return Thing(TENANT)


def _cluster(cluster: str) -> Thing:
    return Thing(CLUSTER, existing(cluster))


def _monitor(monitor: str) -> Thing:
    return Thing(MONITOR, existing(monitor))


FreezingPart = Annotated[Freezing, Depends(_freezing)]
Whole = Annotated[Thing, Depends(_whole)]
OfCluster = Annotated[Thing, Depends(_cluster)]
OfMonitor = Annotated[Thing, Depends(_monitor)]
_CREATED: dict[int | str, dict[str, Any]] = {201: {"model": FreezeOut}}


@router.get("/freezes", summary="List a tenant's freezes that have not ended")
async def list_freezes(
    caller: Viewer, freezing: FreezingPart, tenant: Tenant, wanted: WantedPage
) -> Listing[FreezeOut]:
    page = await freezing.listed(caller.scope, tenant, wanted)
    return Listing(items=[freeze_of(row) for row in page.rows], next=page.after)


@router.get("/freeze", summary="Show the freeze of a whole tenant")
async def show_tenant_freeze(caller: Viewer, freezing: FreezingPart, tenant: Tenant, thing: Whole) -> FreezeOut:
    return freeze_of(await freezing.show(caller.scope, tenant, thing))


@router.put("/freeze", responses=_CREATED, summary="Freeze all monitors of a tenant")
async def freeze_tenant(
    *, caller: TenantAdmin, freezing: FreezingPart, tenant: Tenant, thing: Whole, given: FreezeIn, response: Response
) -> FreezeOut:
    return told(response, await freezing.put(caller.scope, tenant, thing, given))


@router.delete("/freeze", status_code=204, summary="End the freeze of a whole tenant")
async def unfreeze_tenant(caller: TenantAdmin, freezing: FreezingPart, tenant: Tenant, thing: Whole) -> None:
    await freezing.remove(caller.scope, tenant, thing)


@router.get("/clusters/{cluster}/freeze", summary="Show the freeze of a cluster")
async def show_cluster_freeze(caller: Viewer, freezing: FreezingPart, tenant: Tenant, thing: OfCluster) -> FreezeOut:
    return freeze_of(await freezing.show(caller.scope, tenant, thing))


@router.put("/clusters/{cluster}/freeze", responses=_CREATED, summary="Freeze all monitors of a cluster")
async def freeze_cluster(
    *,
    caller: TenantAdmin,
    freezing: FreezingPart,
    tenant: Tenant,
    thing: OfCluster,
    given: FreezeIn,
    response: Response,
) -> FreezeOut:
    return told(response, await freezing.put(caller.scope, tenant, thing, given))


@router.delete("/clusters/{cluster}/freeze", status_code=204, summary="End the freeze of a cluster")
async def unfreeze_cluster(caller: TenantAdmin, freezing: FreezingPart, tenant: Tenant, thing: OfCluster) -> None:
    await freezing.remove(caller.scope, tenant, thing)


@router.get("/monitors/{monitor}/freeze", summary="Show the freeze of a monitor")
async def show_monitor_freeze(caller: Viewer, freezing: FreezingPart, tenant: Tenant, thing: OfMonitor) -> FreezeOut:
    return freeze_of(await freezing.show(caller.scope, tenant, thing))


@router.put("/monitors/{monitor}/freeze", responses=_CREATED, summary="Freeze a monitor: KEDA gets what was known")
async def freeze_monitor(
    *,
    caller: TenantAdmin,
    freezing: FreezingPart,
    tenant: Tenant,
    thing: OfMonitor,
    given: FreezeIn,
    response: Response,
) -> FreezeOut:
    return told(response, await freezing.put(caller.scope, tenant, thing, given))


@router.delete("/monitors/{monitor}/freeze", status_code=204, summary="End the freeze of a monitor")
async def unfreeze_monitor(caller: TenantAdmin, freezing: FreezingPart, tenant: Tenant, thing: OfMonitor) -> None:
    await freezing.remove(caller.scope, tenant, thing)


def told(response: Response, outcome: Outcome) -> FreezeOut:
    """The freeze, and whether it was created."""
    response.status_code = 201 if outcome.created else 200
    return freeze_of(outcome.row)
