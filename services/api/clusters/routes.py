"""/v1/tenants/{tenant}/clusters. Secrets go in and never come out."""

from __future__ import annotations

from fastapi import APIRouter, Response

from services.api.auth.authenticator import TenantAdmin, Viewer
from services.api.clusters.schemas import ClusterIn, ClusterOut
from services.api.deps import OperationsPart, PageQuery, Tenant, check_name, set_etag
from services.api.dry_run import SUPPORTS_DRY_RUN
from services.api.preconditions import Precondition
from services.api.preflight.routes import Preflight, add_cluster_warnings
from services.api.schemas import Listing
from services.api.serializers import serialize_cluster

router = APIRouter(prefix="/v1/tenants/{tenant}/clusters", tags=["clusters"])


@router.get("", summary="List a tenant's clusters")
async def list_clusters(
    caller: Viewer, operations: OperationsPart, tenant: Tenant, page_request: PageQuery
) -> Listing[ClusterOut]:
    page = await operations.list_clusters(caller.scope, tenant, page_request)
    return Listing(items=[serialize_cluster(row) for row in page.rows], next=page.after)


@router.post("", status_code=201, summary="Create a cluster")
async def create_cluster(
    *,
    caller: TenantAdmin,
    operations: OperationsPart,
    tenant: Tenant,
    given: ClusterIn,
    preflight: Preflight,
    response: Response,
) -> ClusterOut:
    row = await operations.create_cluster(caller.scope, tenant, given)
    set_etag(response, row["version"])
    return await add_cluster_warnings(preflight, caller.scope, tenant, row)


@router.get("/{cluster}", summary="Show a cluster and its state")
async def show_cluster(
    caller: Viewer, operations: OperationsPart, tenant: Tenant, cluster: str, response: Response
) -> ClusterOut:
    row = await operations.cluster(caller.scope, tenant, check_name(cluster))
    set_etag(response, row["version"])
    return serialize_cluster(row)


@router.put(
    "/{cluster}",
    responses={201: {"model": ClusterOut}},
    summary="Create a cluster, or make it so",
    dependencies=[SUPPORTS_DRY_RUN],
)
async def put_cluster(
    *,
    caller: TenantAdmin,
    operations: OperationsPart,
    tenant: Tenant,
    cluster: str,
    given: ClusterIn,
    precondition: Precondition,
    preflight: Preflight,
    response: Response,
) -> ClusterOut:
    row, created = await operations.put_cluster(
        caller.scope, tenant, check_name(cluster), given, precondition=precondition
    )
    response.status_code = 201 if created else 200
    set_etag(response, row["version"])
    return await add_cluster_warnings(preflight, caller.scope, tenant, row)


@router.delete("/{cluster}", status_code=204, summary="Delete a cluster that no monitor uses")
async def delete_cluster(
    caller: TenantAdmin, operations: OperationsPart, tenant: Tenant, cluster: str, precondition: Precondition
) -> None:
    await operations.delete_cluster(caller.scope, tenant, check_name(cluster), precondition)
