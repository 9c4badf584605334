"""/v1/tenants: the platform's administrators write, a tenant's keys see their own."""

from __future__ import annotations

from fastapi import APIRouter, Response

from services.api.auth.authenticator import PlatformAdmin, Viewer
from services.api.deps import OperationsPart, PageQuery, Tenant, set_etag, set_status_and_etag
from services.api.dry_run import SUPPORTS_DRY_RUN
from services.api.preconditions import CachedVersions, Precondition
from services.api.schemas import Listing
from services.api.serializers import serialize_policy_warnings, serialize_tenant
from services.api.tenants.policy_schemas import PolicyWarning
from services.api.tenants.schemas import TenantIn, TenantOut

router = APIRouter(prefix="/v1/tenants", tags=["tenants"])


@router.get("", summary="List tenants")
async def list_tenants(caller: Viewer, operations: OperationsPart, page_request: PageQuery) -> Listing[TenantOut]:
    page = await operations.list_tenants(caller.scope, page_request)
    return Listing(items=[serialize_tenant(row) for row in page.rows], next=page.after)


@router.post("", status_code=201, summary="Create a tenant")
async def create_tenant(
    caller: PlatformAdmin, operations: OperationsPart, given: TenantIn, response: Response
) -> TenantOut:
    outcome = await operations.create_tenant(caller.scope, given)
    set_status_and_etag(response, outcome)
    return serialize_tenant(outcome.row)


@router.get(
    "/{tenant}",
    response_model=TenantOut,
    responses={304: {"description": "It is as `If-None-Match` says."}},
    summary="Show a tenant",
)
async def show_tenant(
    caller: Viewer, operations: OperationsPart, tenant: Tenant, cached_versions: CachedVersions, response: Response
) -> TenantOut | Response:
    # Only here: the version of a cluster or a monitor says nothing of its states, which are a part of the answer.
    row = await operations.tenant(caller.scope, tenant)
    if row["version"] in cached_versions:
        unchanged = Response(status_code=304)
        set_etag(unchanged, row["version"])
        return unchanged
    set_etag(response, row["version"])
    return serialize_tenant(row)


@router.put(
    "/{tenant}",
    responses={201: {"model": TenantOut}},
    summary="Create a tenant, or make it so",
    dependencies=[SUPPORTS_DRY_RUN],
)
async def put_tenant(
    *,
    caller: PlatformAdmin,
    operations: OperationsPart,
    tenant: Tenant,
    given: TenantIn,
    precondition: Precondition,
    response: Response,
) -> TenantOut:
    outcome, violations = await operations.put_tenant(caller.scope, tenant, given, precondition)
    set_status_and_etag(response, outcome)
    return serialize_tenant(outcome.row, violations)


@router.delete("/{tenant}", status_code=204, summary="Delete an empty tenant")
async def delete_tenant(
    caller: PlatformAdmin, operations: OperationsPart, tenant: Tenant, precondition: Precondition
) -> None:
    await operations.delete_tenant(caller.scope, tenant, precondition)


@router.get("/{tenant}/policy-warnings", summary="List the monitors that the tenant's rules forbid")
async def list_policy_warnings(
    caller: Viewer, operations: OperationsPart, tenant: Tenant, page_request: PageQuery
) -> Listing[PolicyWarning]:
    violations, after = await operations.find_violations(caller.scope, tenant, page_request)
    return Listing(items=list(serialize_policy_warnings(violations)), next=after)
