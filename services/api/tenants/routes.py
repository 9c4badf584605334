"""/v1/tenants: the platform's administrators write, a tenant's keys see their own."""

from __future__ import annotations

from fastapi import APIRouter, Response

from services.api.auth.access import PlatformAdmin, Viewer
from services.api.deps import OperationsPart, Tenant, WantedPage, tag, tell
from services.api.dry_run import CAN_TRY
from services.api.preconditions import HasVersions, Seen
from services.api.schemas import Listing
from services.api.serializers import tenant_of, warnings_of
from services.api.tenants.policy_schemas import PolicyWarning
from services.api.tenants.schemas import TenantIn, TenantOut

router = APIRouter(prefix="/v1/tenants", tags=["tenants"])


@router.get("", summary="List tenants")
async def list_tenants(caller: Viewer, operations: OperationsPart, wanted: WantedPage) -> Listing[TenantOut]:
    page = await operations.list_tenants(caller.scope, wanted)
    return Listing(items=[tenant_of(row) for row in page.rows], next=page.after)


@router.post("", status_code=201, summary="Create a tenant")
async def create_tenant(
    caller: PlatformAdmin, operations: OperationsPart, given: TenantIn, response: Response
) -> TenantOut:
    outcome = await operations.create_tenant(caller.scope, given)
    tell(response, outcome)
    return tenant_of(outcome.row)


@router.get(
    "/{tenant}",
    response_model=TenantOut,
    responses={304: {"description": "It is as `If-None-Match` says."}},
    summary="Show a tenant",
)
async def show_tenant(
    caller: Viewer, operations: OperationsPart, tenant: Tenant, known: HasVersions, response: Response
) -> TenantOut | Response:
    # Only here: the version of a cluster or a monitor says nothing of its states, which are a part of the answer.
    row = await operations.tenant(caller.scope, tenant)
    if row["version"] in known:
        unchanged = Response(status_code=304)
        tag(unchanged, row["version"])
        return unchanged
    tag(response, row["version"])
    return tenant_of(row)


@router.put(
    "/{tenant}", responses={201: {"model": TenantOut}}, summary="Create a tenant, or make it so", dependencies=[CAN_TRY]
)
async def put_tenant(
    *,
    caller: PlatformAdmin,
    operations: OperationsPart,
    tenant: Tenant,
    given: TenantIn,
    seen: Seen,
    response: Response,
) -> TenantOut:
    outcome, forbidden = await operations.put_tenant(caller.scope, tenant, given, seen)
    tell(response, outcome)
    return tenant_of(outcome.row, forbidden)


@router.delete("/{tenant}", status_code=204, summary="Delete an empty tenant")
async def delete_tenant(caller: PlatformAdmin, operations: OperationsPart, tenant: Tenant, seen: Seen) -> None:
    await operations.delete_tenant(caller.scope, tenant, seen)


@router.get("/{tenant}/policy-warnings", summary="List the monitors that the tenant's rules forbid")
async def list_policy_warnings(
    caller: Viewer, operations: OperationsPart, tenant: Tenant, wanted: WantedPage
) -> Listing[PolicyWarning]:
    forbidden, after = await operations.outlaws(caller.scope, tenant, wanted)
    return Listing(items=list(warnings_of(forbidden)), next=after)
