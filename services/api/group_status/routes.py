"""/v1/tenants/{tenant}/monitors/{monitor}/state: how a monitor's group fares, in the field's words."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from services.api.auth.authenticator import Viewer
from services.api.deps import Tenant, check_name
from services.api.group_status.reader import GroupStatusReader
from services.api.group_status.schemas import GroupStatusOut

router = APIRouter(prefix="/v1/tenants/{tenant}/monitors", tags=["monitors"])


def _get_group_statuses(request: Request) -> GroupStatusReader:
    part: GroupStatusReader = request.app.state.group_statuses
    return part


@router.get("/{monitor}/state", summary="Tell the state of a monitor's group and of each partition")
async def show_state(
    caller: Viewer,
    group_statuses: Annotated[GroupStatusReader, Depends(_get_group_statuses)],
    tenant: Tenant,
    monitor: str,
) -> GroupStatusOut:
    return await group_statuses.read(caller.scope, tenant, check_name(monitor))
