"""/v1/tenants/{tenant}/clusters/{cluster}/preflight: is the cluster reachable, and what may Lagscale do there?"""

from __future__ import annotations

from typing import Annotated

import structlog
from fastapi import APIRouter, Depends, Query, Request

from lagscale.errors import LagscaleError
from lagscale.store.registry.session import Row, Scope
from services.api.auth.access import TenantAdmin
from services.api.clusters.schemas import ClusterOut
from services.api.deps import Tenant, existing
from services.api.preflight.preflight import Preflights
from services.api.preflight.schemas import PreflightOut
from services.api.serializers import cluster_of

log = structlog.get_logger(__name__)

router = APIRouter(prefix="/v1/tenants/{tenant}/clusters", tags=["clusters"])


def preflights(request: Request) -> Preflights:
    """The application's preflights."""
    found: Preflights = request.app.state.preflights
    return found


def _wanted(
    preflights: Annotated[Preflights, Depends(preflights)],
    preflight: Annotated[
        bool, Query(description="Whether the cluster is looked at, and warned of what is wrong.")
    ] = True,
) -> Preflights | None:
    return preflights if preflight else None


#: The preflights that a registration runs; None where it shall not.
Preflight = Annotated[Preflights | None, Depends(_wanted)]


async def with_warnings(preflight: Preflights | None, scope: Scope, tenant: str, row: Row) -> ClusterOut:
    """The answer to a registration."""
    shown = cluster_of(row)
    if preflight is not None:
        try:
            shown.warnings = await preflight.warnings(scope, tenant, row)
        except LagscaleError as away:
            # It is registered, so it is answered so, whatever became of the store meanwhile.
            log.warning("cluster_not_looked_at", error=type(away).__name__)
    return shown


@router.post("/{cluster}/preflight", summary="Look at a cluster: addresses, credentials, and each right")
async def run_preflight(
    caller: TenantAdmin, preflights: Annotated[Preflights, Depends(preflights)], tenant: Tenant, cluster: str
) -> PreflightOut:
    return await preflights.of(caller.scope, tenant, existing(cluster))
