"""/v1/tenants/{tenant}/monitors/{monitor}: the verdict and the samples of a monitor."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime

from services.api.deps import PageQuery, Viewer, check_name, part
from services.api.schemas import Listing
from services.api.verdicts.answers import VerdictStore
from services.api.verdicts.reader import list_rounds, read_verdict
from services.api.verdicts.schemas import RoundOut, VerdictOut

router = APIRouter(prefix="/v1/tenants/{tenant}/monitors", tags=["monitors"])

From = Annotated[AwareDatetime | None, Query(alias="from", description="Start of the time range, inclusive.")]
To = Annotated[AwareDatetime | None, Query(description="End of the time range, exclusive.")]


@router.get("/{monitor}/verdict", summary="Show the current verdict of a monitor, with its evidence")
async def show_verdict(tenant: Viewer, verdicts: Annotated[VerdictStore, part("verdicts")], monitor: str) -> VerdictOut:
    return await read_verdict(tenant, verdicts, check_name(monitor))


@router.get("/{monitor}/samples", summary="List the samples of a monitor, the newest round first")
async def list_samples(
    tenant: Viewer, monitor: str, page_request: PageQuery, begin: From = None, to: To = None
) -> Listing[RoundOut]:
    return await list_rounds(tenant, check_name(monitor), begin, to, page_request)
