"""/v1/tenants/{tenant}/monitors/{monitor}/compare: the answers of KEDA's `kafka` trigger next to those of Lagscale."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from lagscale.errors import FieldError, InvalidInput
from services.api.compare.comparison import ComparisonWindow, compare_with_keda
from services.api.compare.schemas import CompareQuery, ComparisonOut
from services.api.deps import Viewer, check_name, parse_time, part
from services.api.verdicts.answers import VerdictStore

router = APIRouter(prefix="/v1/tenants/{tenant}/monitors", tags=["monitors"])


@router.get("/{monitor}/compare", summary="Compare a monitor with KEDA's kafka trigger over a time range")
async def compare(
    tenant: Viewer,
    verdicts: Annotated[VerdictStore, part("verdicts")],
    monitor: str,
    query: Annotated[CompareQuery, Query()],
) -> ComparisonOut:
    if query.max_replicas is not None and query.max_replicas < query.min_replicas:
        raise InvalidInput([FieldError("maxReplicas", "must not be below minReplicas")])
    step_ms = None if query.step is None else round(query.step * 1000)
    window = ComparisonWindow(
        parse_time(query.begin, "from"), parse_time(query.end, "to"), step_ms, round(query.hours * 3_600_000)
    )
    return await compare_with_keda(tenant, verdicts, check_name(monitor), window, query)
