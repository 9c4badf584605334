"""/v1/tenants/{tenant}/monitors/{monitor}/state: how a monitor's group fares, in the field's words."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from services.api.auth.access import Viewer
from services.api.deps import Tenant, existing
from services.api.group_status.group_status import Conditions
from services.api.group_status.schemas import MonitorState

router = APIRouter(prefix="/v1/tenants/{tenant}/monitors", tags=["monitors"])


def _conditions(request: Request) -> Conditions:
    found: Conditions = request.app.state.conditions
    return found


@router.get("/{monitor}/state", summary="Tell the state of a monitor's group and of each partition")
async def show_state(
    caller: Viewer, conditions: Annotated[Conditions, Depends(_conditions)], tenant: Tenant, monitor: str
) -> MonitorState:
    return await conditions.of(caller.scope, tenant, existing(monitor))
