"""/v1/tenants/{tenant}/clusters. Secrets go in and never come out."""

from __future__ import annotations

from fastapi import APIRouter, Response

from services.api.auth.access import TenantAdmin, Viewer
from services.api.clusters.schemas import ClusterIn, ClusterOut
from services.api.deps import OperationsPart, Tenant, WantedPage, existing, tag
from services.api.dry_run import CAN_TRY
from services.api.preconditions import Seen
from services.api.preflight.routes import Preflight, with_warnings
from services.api.schemas import Listing
from services.api.serializers import cluster_of

router = APIRouter(prefix="/v1/tenants/{tenant}/clusters", tags=["clusters"])


@router.get("", summary="List a tenant's clusters")
async def list_clusters(
    caller: Viewer, operations: OperationsPart, tenant: Tenant, wanted: WantedPage
) -> Listing[ClusterOut]:
    page = await operations.list_clusters(caller.scope, tenant, wanted)
    return Listing(items=[cluster_of(row) for row in page.rows], next=page.after)


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
    tag(response, row["version"])
    return await with_warnings(preflight, caller.scope, tenant, row)


@router.get("/{cluster}", summary="Show a cluster and its state")
async def show_cluster(
    caller: Viewer, operations: OperationsPart, tenant: Tenant, cluster: str, response: Response
) -> ClusterOut:
    row = await operations.cluster(caller.scope, tenant, existing(cluster))
    tag(response, row["version"])
    return cluster_of(row)


@router.put(
    "/{cluster}",
    responses={201: {"model": ClusterOut}},
    summary="Create a cluster, or make it so",
    dependencies=[CAN_TRY],
)
async def put_cluster(
    *,
    caller: TenantAdmin,
    operations: OperationsPart,
    tenant: Tenant,
    cluster: str,
    given: ClusterIn,
    seen: Seen,
    preflight: Preflight,
    response: Response,
) -> ClusterOut:
    row, created = await operations.put_cluster(caller.scope, tenant, existing(cluster), given, seen=seen)
    response.status_code = 201 if created else 200
    tag(response, row["version"])
    return await with_warnings(preflight, caller.scope, tenant, row)


@router.delete("/{cluster}", status_code=204, summary="Delete a cluster that no monitor uses")
async def delete_cluster(
    caller: TenantAdmin, operations: OperationsPart, tenant: Tenant, cluster: str, seen: Seen
) -> None:
    await operations.delete_cluster(caller.scope, tenant, existing(cluster), seen)
