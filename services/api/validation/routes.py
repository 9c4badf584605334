"""/v1/tenants/{tenant}/monitors/validate: what registering a monitor would result in."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter

from services.api.deps import TenantAdmin, part
from services.api.monitors.schemas import MonitorIn
from services.api.monitors.validator import MonitorValidator
from services.api.validation.schemas import ValidationOut

router = APIRouter(prefix="/v1/tenants/{tenant}/monitors", tags=["monitors"])


@router.post("/validate", summary="Validate a monitor without storing it")
async def validate_monitor(
    tenant: TenantAdmin, validator: Annotated[MonitorValidator, part("validator")], given: MonitorIn
) -> ValidationOut:
    return await validator.validate(tenant, given)
