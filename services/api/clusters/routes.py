"""/v1/tenants/{tenant}/clusters. Secrets are accepted and never returned."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from lagscale.store.encryption import Keyring
from lagscale.store.registry import clusters
from services.api.clusters.preflight import Preflights
from services.api.clusters.schemas import ClusterIn, ClusterOut, PreflightOut, serialize_cluster
from services.api.clusters.security import build_cluster_spec
from services.api.deps import (
    DryRun,
    IfMatch,
    PageQuery,
    TenantAdmin,
    Viewer,
    check_name,
    match_name,
    part,
    require_name,
    set_etag,
    set_status_and_etag,
)
from services.api.schemas import Listing, serialize_page

router = APIRouter(prefix="/v1/tenants/{tenant}/clusters", tags=["clusters"])

KeyringPart = Annotated[Keyring, part("keyring")]
PreflightsPart = Annotated[Preflights, part("preflights")]
RunPreflight = Annotated[bool, Query(alias="preflight", description="Run a preflight and return its warnings.")]


@router.get("", summary="List the clusters of a tenant")
async def list_clusters(tenant: Viewer, page_request: PageQuery) -> Listing[ClusterOut]:
    async with tenant.session() as session:
        page = await clusters.list_page(session, page_request)
    return serialize_page(page, serialize_cluster)


@router.post("", status_code=201, summary="Create a cluster")
async def create_cluster(
    *,
    tenant: TenantAdmin,
    given: ClusterIn,
    keyring: KeyringPart,
    preflights: PreflightsPart,
    preflight: RunPreflight = True,
    response: Response,
) -> ClusterOut:
    spec = build_cluster_spec(
        require_name(given.name), given, platform=tenant.scope.platform, can_encrypt=keyring.usable
    )
    async with tenant.session() as session:
        await clusters.create(session, spec, keyring)
        row = await clusters.read_by_name(session, spec.name)
    set_etag(response, row["version"])
    body = serialize_cluster(row)
    if preflight:
        body.warnings = await preflights.find_warnings(tenant, row)
    return body


@router.get("/{cluster}", summary="Show a cluster and its state")
async def show_cluster(tenant: Viewer, cluster: str, response: Response) -> ClusterOut:
    check_name(cluster)
    async with tenant.session() as session:
        row = await clusters.read_by_name(session, cluster)
    set_etag(response, row["version"])
    return serialize_cluster(row)


@router.put("/{cluster}", responses={201: {"model": ClusterOut}}, summary="Create or replace a cluster")
async def put_cluster(
    *,
    tenant: TenantAdmin,
    cluster: str,
    given: ClusterIn,
    precondition: IfMatch,
    keyring: KeyringPart,
    preflights: PreflightsPart,
    preflight: RunPreflight = True,
    dry_run: DryRun = False,
    response: Response,
) -> ClusterOut:
    spec = build_cluster_spec(
        match_name(cluster, given.name), given, platform=tenant.scope.platform, can_encrypt=keyring.usable
    )
    # Under the lock two first PUTs of one name create one cluster, without a conflict.
    async with tenant.session(lock=True, dry_run=dry_run) as session:
        outcome = await clusters.put(session, spec, keyring, precondition)
        row = await clusters.read_by_name(session, cluster)
    set_status_and_etag(response, outcome, row)
    body = serialize_cluster(row)
    if preflight:
        body.warnings = await preflights.find_warnings(tenant, row)
    return body


@router.delete("/{cluster}", status_code=204, summary="Delete a cluster that no monitor uses")
async def delete_cluster(tenant: TenantAdmin, cluster: str, precondition: IfMatch) -> None:
    check_name(cluster)
    async with tenant.session() as session:
        await clusters.remove(session, cluster, precondition)


@router.post("/{cluster}/preflight", summary="Check addresses, credentials and permissions of a cluster")
async def run_preflight(tenant: TenantAdmin, preflights: PreflightsPart, cluster: str) -> PreflightOut:
    return await preflights.build_report(tenant, check_name(cluster))
