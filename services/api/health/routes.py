"""A tenant's health behind its key; the process's own health and metrics without one (`open_router`)."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from lagscale.errors import LagscaleError
from lagscale.store.registry.session import RegistryDatabase
from services.api.auth.authenticator import Viewer
from services.api.deps import Tenant, VerdictReaderPart
from services.api.verdicts.schemas import TenantHealth

router = APIRouter(tags=["health"])
open_router = APIRouter(tags=["health"])


@router.get("/v1/tenants/{tenant}/health", summary="Show the states of a tenant's clusters and targets")
async def show_tenant_health(caller: Viewer, verdict_reader: VerdictReaderPart, tenant: Tenant) -> TenantHealth:
    return await verdict_reader.tenant_health(caller.scope, tenant)


@open_router.get("/livez", summary="Does the process run?")
async def live() -> dict[str, str]:
    return {"status": "ok"}


@open_router.get("/readyz", summary="Can requests be served?", responses={503: {"description": "Not now."}})
async def ready(request: Request) -> JSONResponse:
    return await _check_store(request)


@open_router.get("/healthz", summary="Is all well?", responses={503: {"description": "The store does not answer."}})
async def healthy(request: Request) -> JSONResponse:
    return await _check_store(request)


@open_router.get("/metrics", summary="Prometheus metrics", response_class=Response)
async def metrics() -> Response:
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


async def _check_store(request: Request) -> JSONResponse:
    # Every request needs the store, so unlike the scaler this service is not ready without it.
    database: RegistryDatabase = request.app.state.database
    answer: dict[str, Any] = {"status": "ok", "store": "ok"}
    try:
        await database.check()
    except LagscaleError as error:
        answer = {"status": "unavailable", "store": error.message}
        return JSONResponse(answer, 503)
    return JSONResponse(answer)
