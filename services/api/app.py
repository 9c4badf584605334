"""The FastAPI application, from parts that `__main__` or a test hands over."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from lagscale.store.registry.session import RegistryDatabase
from services.api.audit import routes as audit_routes
from services.api.auth.authenticator import Authenticator
from services.api.auth.tenant_rates import TenantRateLimiter
from services.api.bindings import routes as bindings_routes
from services.api.client_address import ClientAddressMiddleware
from services.api.clusters import routes as clusters_routes
from services.api.compare import routes as compare_routes
from services.api.explain import routes as explain_routes
from services.api.explain.explanation import Explanations
from services.api.freezes import routes as freezes_routes
from services.api.freezes.answer import Freezing
from services.api.group_status import routes as group_status_routes
from services.api.group_status.reader import GroupStatusReader
from services.api.health import routes as health_routes
from services.api.keys import routes as keys_routes
from services.api.metrics import MetricsMiddleware
from services.api.middleware import BodyLimitMiddleware
from services.api.monitors import bulk_routes
from services.api.monitors import routes as monitors_routes
from services.api.operations import Operations
from services.api.preflight import routes as preflight_routes
from services.api.preflight.preflight import Preflights
from services.api.problem_answers import build_responses, remove_unreachable_responses
from services.api.problem_types import MAX_BODY_BYTES
from services.api.problems import MEDIA_TYPE, install_error_handlers
from services.api.quotas import routes as quotas_routes
from services.api.quotas.operations import QuotaOperations
from services.api.tenants import routes as tenants_routes
from services.api.validation import routes as validation_routes
from services.api.validation.validator import Validation
from services.api.verdicts.reader import VerdictReader

_DESCRIPTION = """Registers what Lagscale measures, and shows what it saw and judged.

Objects are named in URLs by their names. Lists are read page by page: give `next` of one page as `cursor` of the
following one. Errors are `application/problem+json`. An object of another tenant is answered like one that does not
exist.
"""


@dataclass(frozen=True, slots=True)
class ApiDependencies:
    """What the application stands on; `on_startup` and `on_shutdown` run around its life."""

    database: RegistryDatabase
    access: Authenticator
    operations: Operations
    verdict_reader: VerdictReader
    explanations: Explanations
    group_statuses: GroupStatusReader
    preflights: Preflights
    validation: Validation
    rates: TenantRateLimiter = field(default_factory=TenantRateLimiter)
    on_startup: Callable[[], Awaitable[None]] | None = None
    on_shutdown: Callable[[], Awaitable[None]] | None = None
    trusted_proxies: tuple[str, ...] = ()


def create_app(parts: ApiDependencies) -> FastAPI:
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

    app = FastAPI(
        title="Lagscale",
        version=_read_version(),
        description=_DESCRIPTION,
        lifespan=lifespan_context,
        redirect_slashes=False,
    )
    app.state.database = parts.database
    app.state.access = parts.access
    app.state.operations = parts.operations
    app.state.verdict_reader = parts.verdict_reader
    app.state.explanations = parts.explanations
    app.state.group_statuses = parts.group_statuses
    app.state.freezing = Freezing(parts.database)
    app.state.preflights = parts.preflights
    app.state.validation = parts.validation
    app.state.rates = parts.rates
    app.state.quotas = QuotaOperations(parts.database)
    app.add_middleware(BodyLimitMiddleware, max_bytes=MAX_BODY_BYTES)
    app.add_middleware(MetricsMiddleware)
    app.add_middleware(ClientAddressMiddleware, trusted=parts.trusted_proxies)
    install_error_handlers(app)
    for route_module in (
        tenants_routes, quotas_routes, clusters_routes, preflight_routes, monitors_routes, bulk_routes, validation_routes, explain_routes, compare_routes, group_status_routes, bindings_routes,
        keys_routes, freezes_routes, audit_routes, health_routes,
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
    """The OpenAPI document; errors under the media type that they are really sent with."""
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
