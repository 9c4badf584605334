"""/v1/tenants/{tenant}/monitors/{monitor}/state: how a monitor's group fares, in the field's words."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from services.api.access import Viewer
from services.api.condition_payloads import MonitorState
from services.api.conditions import Conditions
from services.api.routers.requests import Tenant, existing

router = APIRouter(prefix="/v1/tenants/{tenant}/monitors", tags=["monitors"])


def _conditions(request: Request) -> Conditions:
    found: Conditions = request.app.state.conditions
    return found


@router.get("/{monitor}/state", summary="Tell the state of a monitor's group and of each partition")
async def show_state(
    caller: Viewer, conditions: Annotated[Conditions, Depends(_conditions)], tenant: Tenant, monitor: str
) -> MonitorState:
    return await conditions.of(caller.scope, tenant, existing(monitor))
