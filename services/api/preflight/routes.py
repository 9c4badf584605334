"""/v1/tenants/{tenant}/clusters/{cluster}/preflight: is the cluster reachable, and what may Lagscale do there?"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter

from services.api.clusters.preflight import Preflights
from services.api.deps import TenantAdmin, check_name, part
from services.api.preflight.schemas import PreflightOut

router = APIRouter(prefix="/v1/tenants/{tenant}/clusters", tags=["clusters"])


@router.post("/{cluster}/preflight", summary="Check addresses, credentials and permissions of a cluster")
async def run_preflight(
    tenant: TenantAdmin, preflights: Annotated[Preflights, part("preflights")], cluster: str
) -> PreflightOut:
    return await preflights.build_report(tenant, check_name(cluster))
