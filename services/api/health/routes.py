"""Health of tenants and monitors, which needs a key; health and metrics of the process, which need none (`open_router`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from lagscale.domain.state_codes import StateCode
from lagscale.errors import LagscaleError
from lagscale.store.registry import clusters, history, monitors
from lagscale.store.registry.paging import MAX_PAGE_SIZE, PageRequest
from lagscale.store.registry.session import RegistryDatabase, Row, TenantSession
from services.api.deps import Viewer, check_name
from services.api.health.schemas import ClusterHealth, MonitorHealth, TargetHealth, TenantHealth
from services.api.schemas import serialize_state

router = APIRouter(tags=["health"])
open_router = APIRouter(tags=["health"])


@router.get("/v1/tenants/{tenant}/health", summary="Show the health of a tenant's clusters and targets")
async def show_tenant_health(tenant: Viewer) -> TenantHealth:
    async with tenant.session() as session:
        rows = await _list_all_clusters(session)
        targets = await history.read_target_states(session)
    found = [
        _serialize_cluster(row, [target for target in targets if target["cluster"] == row["name"]]) for row in rows
    ]
    is_ok = all(
        (cluster.state is None or cluster.state.code == StateCode.OK) and set(cluster.targets_by_code) <= {StateCode.OK}
        for cluster in found
    )
    return TenantHealth(tenant=tenant.name, ok=is_ok, clusters=found)


@router.get(
    "/v1/tenants/{tenant}/monitors/{monitor}/health",
    tags=["monitors"],
    summary="Show the health of a monitor's cluster and targets",
)
async def show_monitor_health(tenant: Viewer, monitor: str) -> MonitorHealth:
    check_name(monitor)
    async with tenant.session() as session:
        row = await monitors.read_by_name(session, monitor)
        cluster = await clusters.read_by_name(session, row["cluster"])
        targets = await history.read_target_states(session, row["id"])
    return MonitorHealth(
        monitor=monitor,
        cluster_state=serialize_state(cluster, "state_"),
        topic_discovery=serialize_state(row, "scope_"),
        targets=[_serialize_target(target) for target in targets],
    )


async def _list_all_clusters(session: TenantSession) -> list[Row]:
    rows: list[Row] = []
    after: str | None = None
    while True:
        page = await clusters.list_page(session, PageRequest(MAX_PAGE_SIZE, after))
        rows.extend(page.rows)
        after = page.after
        if after is None:
            return rows


def _serialize_target(row: Row) -> TargetHealth:
    return TargetHealth.from_row(
        row,
        state=serialize_state(row, ""),
        newest_sample_at=row["newest_at"],
        newest_sample_age_seconds=_compute_age(row),
    )


def _compute_age(row: Row) -> float | None:
    newest: datetime | None = row["newest_at"]
    return None if newest is None else max(0.0, round((row["present"] - newest).total_seconds(), 3))


def _serialize_cluster(row: Row, targets: Sequence[Row]) -> ClusterHealth:
    ages = [age for target in targets if (age := _compute_age(target)) is not None]
    return ClusterHealth(
        cluster=row["name"],
        state=serialize_state(row, "state_"),
        targets=len(targets),
        targets_by_code=dict(Counter(str(target["code"] or "not_asked") for target in targets)),
        newest_sample_age_seconds=min(ages, default=None),
        stalest_target_age_seconds=max(ages) if ages and len(ages) == len(targets) else None,
    )


@open_router.get("/livez", summary="Liveness")
async def live() -> dict[str, str]:
    return {"status": "ok"}


@open_router.get("/readyz", summary="Readiness", responses={503: {"description": "Not ready."}})
async def ready(request: Request) -> JSONResponse:
    return await _check_store(request)


@open_router.get("/healthz", summary="Health", responses={503: {"description": "The database is unavailable."}})
async def healthy(request: Request) -> JSONResponse:
    return await _check_store(request)


@open_router.get("/metrics", summary="Prometheus metrics", response_class=Response)
async def metrics() -> Response:
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


async def _check_store(request: Request) -> JSONResponse:
    # Every request needs the database, so unlike the scaler this service is not ready without it.
    database: RegistryDatabase = request.app.state.database
    answer: dict[str, Any] = {"status": "ok", "store": "ok"}
    try:
        await database.check()
    except LagscaleError as error:
        answer = {"status": "unavailable", "store": error.message}
        return JSONResponse(answer, 503)
    return JSONResponse(answer)
