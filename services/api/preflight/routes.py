"""/v1/tenants/{tenant}/clusters/{cluster}/preflight: is the cluster reachable, and what may Lagscale do there?"""

from __future__ import annotations

from typing import Annotated

import structlog
from fastapi import APIRouter, Depends, Query, Request

from lagscale.errors import LagscaleError
from lagscale.store.registry.session import AccessScope, Row
from services.api.auth.authenticator import TenantAdmin
from services.api.clusters.schemas import ClusterOut
from services.api.deps import Tenant, check_name
from services.api.preflight.preflight import Preflights
from services.api.preflight.schemas import PreflightOut
from services.api.serializers import serialize_cluster

log = structlog.get_logger(__name__)

router = APIRouter(prefix="/v1/tenants/{tenant}/clusters", tags=["clusters"])


def preflights(request: Request) -> Preflights:
    """The application's preflights."""
    part: Preflights = request.app.state.preflights
    return part


def _select_preflights(
    preflights: Annotated[Preflights, Depends(preflights)],
    preflight: Annotated[
        bool, Query(description="Whether the cluster is looked at, and warned of what is wrong.")
    ] = True,
) -> Preflights | None:
    return preflights if preflight else None


#: The preflights that a registration runs; None where it shall not.
Preflight = Annotated[Preflights | None, Depends(_select_preflights)]


async def add_cluster_warnings(preflight: Preflights | None, scope: AccessScope, tenant: str, row: Row) -> ClusterOut:
    """The answer to a registration."""
    body = serialize_cluster(row)
    if preflight is not None:
        try:
            body.warnings = await preflight.warnings(scope, tenant, row)
        except LagscaleError as error:
            # It is registered, so it is answered so, whatever became of the store meanwhile.
            log.warning("cluster_not_looked_at", error=type(error).__name__)
    return body


@router.post("/{cluster}/preflight", summary="Look at a cluster: addresses, credentials, and each right")
async def run_preflight(
    caller: TenantAdmin, preflights: Annotated[Preflights, Depends(preflights)], tenant: Tenant, cluster: str
) -> PreflightOut:
    return await preflights.build_report(caller.scope, tenant, check_name(cluster))
