"""Health of tenants and monitors, which needs a key; health and metrics of the process, which need none (`open_router`)."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from lagscale.errors import LagscaleError
from lagscale.store.registry.session import RegistryDatabase
from services.api.deps import Viewer, check_name
from services.api.health.reader import read_monitor_health, read_tenant_health
from services.api.health.schemas import MonitorHealth, TenantHealth

router = APIRouter(tags=["health"])
open_router = APIRouter(tags=["health"])


@router.get("/v1/tenants/{tenant}/health", summary="Show the health of a tenant's clusters and targets")
async def show_tenant_health(tenant: Viewer) -> TenantHealth:
    async with tenant.session() as session:
        return await read_tenant_health(session)


@router.get(
    "/v1/tenants/{tenant}/monitors/{monitor}/health",
    tags=["monitors"],
    summary="Show the health of a monitor's cluster and targets",
)
async def show_monitor_health(tenant: Viewer, monitor: str) -> MonitorHealth:
    check_name(monitor)
    async with tenant.session() as session:
        return await read_monitor_health(session, monitor)


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
