"""/v1/tenants/{tenant}/monitors/{monitor}/state: status of a monitor's group."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter

from services.api.deps import Viewer, check_name, part
from services.api.group_status.reader import RoundSource, read_group_status
from services.api.group_status.schemas import GroupStatusOut

router = APIRouter(prefix="/v1/tenants/{tenant}/monitors", tags=["monitors"])


@router.get("/{monitor}/state", summary="Show the status of a monitor's group and its partitions")
async def show_state(tenant: Viewer, rounds: Annotated[RoundSource, part("rounds")], monitor: str) -> GroupStatusOut:
    return await read_group_status(tenant, rounds, check_name(monitor))
