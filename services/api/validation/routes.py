"""/v1/tenants/{tenant}/monitors/validate: what registering a monitor would say; and its warnings at registration."""

from __future__ import annotations

from typing import Annotated

import structlog
from fastapi import APIRouter, Depends, Query, Request

from lagscale.errors import LagscaleError
from lagscale.store.registry.session import AccessScope
from services.api.auth.authenticator import TenantAdmin
from services.api.deps import Tenant
from services.api.schemas import MonitorIn, MonitorOut
from services.api.validation.schemas import ValidationOut
from services.api.validation.validator import Validation

log = structlog.get_logger(__name__)

router = APIRouter(prefix="/v1/tenants/{tenant}/monitors", tags=["monitors"])


def _get_validation(request: Request) -> Validation:
    part: Validation = request.app.state.validation
    return part


def _select_validation(
    validation: Annotated[Validation, Depends(_get_validation)],
    validate: Annotated[bool, Query(description="Whether the cluster is asked, and warned of what it says.")] = True,
) -> Validation | None:
    return validation if validate else None


#: The validation that a registration runs; None where it shall not.
ValidationPart = Annotated[Validation | None, Depends(_select_validation)]


async def add_monitor_warnings(
    validation: Validation | None, scope: AccessScope, tenant: str, given: MonitorIn, body: MonitorOut
) -> MonitorOut:
    """The answer to a registration, with its warnings."""
    if validation is not None:
        try:
            body.warnings = (await validation.check(scope, tenant, given)).warnings
        except LagscaleError as error:
            # It is registered, so it is answered so, whatever became of the store meanwhile.
            log.warning("monitor_not_validated", error=type(error).__name__)
    return body


@router.post("/validate", summary="Tell what registering a monitor would say, and store nothing")
async def validate_monitor(
    caller: TenantAdmin, validation: Annotated[Validation, Depends(_get_validation)], tenant: Tenant, given: MonitorIn
) -> ValidationOut:
    return await validation.check(caller.scope, tenant, given)
