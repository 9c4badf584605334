"""The FastAPI application, from parts that `__main__` or a test builds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi_offline import FastAPIOffline

from lagscale.store.encryption import Keyring
from lagscale.store.registry.session import RegistryDatabase
from services.api.audit import routes as audit_routes
from services.api.auth.authenticator import Authenticator
from services.api.auth.rate_limits import TenantRateLimiter
from services.api.bindings import routes as bindings_routes
from services.api.clusters import routes as clusters_routes
from services.api.clusters.preflight import Preflights
from services.api.compare import routes as compare_routes
from services.api.explain import routes as explain_routes
from services.api.freezes import routes as freezes_routes
from services.api.group_status import routes as group_status_routes
from services.api.group_status.counts import RoundSource
from services.api.health import routes as health_routes
from services.api.keys import routes as keys_routes
from services.api.middleware import BodyLimitMiddleware, ClientAddressMiddleware, MetricsMiddleware
from services.api.monitors import routes as monitors_routes
from services.api.monitors.validator import MonitorValidator
from services.api.problem_types import MAX_BODY_BYTES
from services.api.problems import MEDIA_TYPE, build_responses, install_error_handlers, remove_unreachable_responses
from services.api.tenants import quotas as quotas_routes
from services.api.tenants import routes as tenants_routes
from services.api.verdicts import routes as verdicts_routes
from services.api.verdicts.answers import VerdictStore

_DESCRIPTION = """Registers what Lagscale measures, and shows samples, verdicts and answers.

Objects are identified in URLs by their names. Lists are paged: pass `next` of a page as `cursor` to get the following
one. Errors are `application/problem+json`. Objects of another tenant are answered like objects that do not exist.
"""


@dataclass(frozen=True, slots=True)
class ApiParts:
    """What the routes use, each by its name here; `on_startup` and `on_shutdown` run around the life of the server.

    Attributes:
        verdicts, rounds: in the scaler's role.
        tick_seconds: of the scraper, which policies are checked against.
        docs: whether `/docs` serves Swagger UI, whose assets are a package's, so that no browser needs the internet.
    """

    database: RegistryDatabase
    authenticator: Authenticator
    tenant_rates: TenantRateLimiter
    keyring: Keyring
    verdicts: VerdictStore
    rounds: RoundSource
    preflights: Preflights
    validator: MonitorValidator
    tick_seconds: float
    on_startup: Callable[[], Awaitable[None]] | None = None
    on_shutdown: Callable[[], Awaitable[None]] | None = None
    trusted_proxies: tuple[str, ...] = ()
    docs: bool = False


def create_app(parts: ApiParts) -> FastAPI:
    """The application."""

    @asynccontextmanager
    async def lifespan_context(_app: FastAPI) -> AsyncIterator[None]:
        if parts.on_startup is not None:
            await parts.on_startup()
        try:
            yield
        finally:
            if parts.on_shutdown is not None:
                await parts.on_shutdown()

    app = (FastAPIOffline if parts.docs else FastAPI)(
        docs_url="/docs" if parts.docs else None,
        redoc_url=None,
        title="Lagscale",
        version=_read_version(),
        description=_DESCRIPTION,
        lifespan=lifespan_context,
        redirect_slashes=False,
    )
    for part in fields(parts):
        setattr(app.state, part.name, getattr(parts, part.name))
    app.add_middleware(BodyLimitMiddleware, max_bytes=MAX_BODY_BYTES)
    app.add_middleware(MetricsMiddleware)
    app.add_middleware(ClientAddressMiddleware, trusted=parts.trusted_proxies)
    install_error_handlers(app)
    for route_module in (
        tenants_routes, quotas_routes, clusters_routes, monitors_routes, verdicts_routes, explain_routes, compare_routes,
        group_status_routes, bindings_routes, keys_routes, freezes_routes, audit_routes, health_routes,
    ):  # fmt: skip
        app.include_router(route_module.router, responses=build_responses())
    app.include_router(health_routes.open_router)
    app.openapi = lambda: _build_openapi(app)  # type: ignore[method-assign]
    return app


def _read_version() -> str:
    try:
        return version("lagscale")
    except PackageNotFoundError:
        return "0"


def _build_openapi(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document; errors with the media type of problem documents."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes, tags=app.openapi_tags
        )
        for operations in document["paths"].values():
            for method, operation in operations.items():
                remove_unreachable_responses(method, operation)
                for status, answer in operation.get("responses", {}).items():
                    if int(status) >= 400 and "application/json" in answer.get("content", {}):
                        answer["content"][MEDIA_TYPE] = answer["content"].pop("application/json")
        app.openapi_schema = document
    return app.openapi_schema
