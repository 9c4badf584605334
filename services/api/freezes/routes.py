"""Freezes of a tenant, of a cluster and of a monitor: while one is in force, KEDA gets the answer of its beginning."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from lagscale.errors import FieldError, InvalidInput
from lagscale.store.registry import freezes
from lagscale.store.registry.freezes import CLUSTER, MONITOR, TENANT, FreezeSubject
from services.api.deps import PageQuery, TenantAccess, TenantAdmin, Viewer, check_name, set_status
from services.api.freezes.schemas import FreezeIn, FreezeOut, serialize_freeze
from services.api.schemas import Listing, serialize_page

router = APIRouter(prefix="/v1/tenants/{tenant}", tags=["freezes"])


def _name_cluster(cluster: str) -> FreezeSubject:
    return FreezeSubject(CLUSTER, check_name(cluster))


def _name_monitor(monitor: str) -> FreezeSubject:
    return FreezeSubject(MONITOR, check_name(monitor))


_TENANT_SUBJECT = FreezeSubject(TENANT)
ClusterSubject = Annotated[FreezeSubject, Depends(_name_cluster)]
MonitorSubject = Annotated[FreezeSubject, Depends(_name_monitor)]
_CREATED: dict[int | str, dict[str, Any]] = {201: {"model": FreezeOut}}


@router.get("/freezes", summary="List the freezes of a tenant that have not ended")
async def list_freezes(tenant: Viewer, page_request: PageQuery) -> Listing[FreezeOut]:
    async with tenant.session() as session:
        page = await freezes.list_page(session, page_request)
    return serialize_page(page, serialize_freeze)


@router.get("/freeze", summary="Show the freeze of a tenant")
async def show_tenant_freeze(tenant: Viewer) -> FreezeOut:
    return await _show(tenant, _TENANT_SUBJECT)


@router.put("/freeze", responses=_CREATED, summary="Freeze all monitors of a tenant")
async def freeze_tenant(tenant: TenantAdmin, given: FreezeIn, response: Response) -> FreezeOut:
    return await _put(tenant, _TENANT_SUBJECT, given, response)


@router.delete("/freeze", status_code=204, summary="End the freeze of a tenant")
async def unfreeze_tenant(tenant: TenantAdmin) -> None:
    await _remove(tenant, _TENANT_SUBJECT)


@router.get("/clusters/{cluster}/freeze", summary="Show the freeze of a cluster")
async def show_cluster_freeze(tenant: Viewer, subject: ClusterSubject) -> FreezeOut:
    return await _show(tenant, subject)


@router.put("/clusters/{cluster}/freeze", responses=_CREATED, summary="Freeze all monitors of a cluster")
async def freeze_cluster(
    tenant: TenantAdmin, subject: ClusterSubject, given: FreezeIn, response: Response
) -> FreezeOut:
    return await _put(tenant, subject, given, response)


@router.delete("/clusters/{cluster}/freeze", status_code=204, summary="End the freeze of a cluster")
async def unfreeze_cluster(tenant: TenantAdmin, subject: ClusterSubject) -> None:
    await _remove(tenant, subject)


@router.get("/monitors/{monitor}/freeze", summary="Show the freeze of a monitor")
async def show_monitor_freeze(tenant: Viewer, subject: MonitorSubject) -> FreezeOut:
    return await _show(tenant, subject)


@router.put("/monitors/{monitor}/freeze", responses=_CREATED, summary="Freeze a monitor")
async def freeze_monitor(
    tenant: TenantAdmin, subject: MonitorSubject, given: FreezeIn, response: Response
) -> FreezeOut:
    return await _put(tenant, subject, given, response)


@router.delete("/monitors/{monitor}/freeze", status_code=204, summary="End the freeze of a monitor")
async def unfreeze_monitor(tenant: TenantAdmin, subject: MonitorSubject) -> None:
    await _remove(tenant, subject)


async def _show(tenant: TenantAccess, subject: FreezeSubject) -> FreezeOut:
    async with tenant.session() as session:
        row = await freezes.read_by_name(session, subject)
    return serialize_freeze(row)


async def _put(tenant: TenantAccess, subject: FreezeSubject, given: FreezeIn, response: Response) -> FreezeOut:
    if (given.until is None) == (given.for_seconds is None):
        raise InvalidInput([FieldError("until", "or forSeconds must be given, and only one of them")])
    until = given.until or timedelta(seconds=given.for_seconds or 0)
    # Under the lock two first PUTs create one freeze.
    async with tenant.session(lock=True) as session:
        outcome = await freezes.put(session, subject, reason=given.reason.strip(), until=until)
    set_status(response, created=outcome.created)
    return serialize_freeze(outcome.row)


async def _remove(tenant: TenantAccess, subject: FreezeSubject) -> None:
    async with tenant.session(lock=True) as session:
        await freezes.remove(session, subject)
