"""/v1/tenants/{tenant}/monitors/{monitor}/explain: explanation of the answers at a point in time."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from services.api.deps import Viewer, check_name, parse_time, part
from services.api.explain.explanation import explain_answers
from services.api.explain.schemas import ExplanationOut
from services.api.verdicts.answers import VerdictStore

router = APIRouter(prefix="/v1/tenants/{tenant}/monitors", tags=["monitors"])

AtQuery = Annotated[
    str | None,
    Query(
        max_length=64,
        description="The time: ISO 8601 with its zone, or milliseconds since 1970. Default: now.",
        openapi_examples={"time": {"value": "2030-01-31T12:00:00Z"}, "milliseconds": {"value": "1896091200000"}},
    ),
]


@router.get("/{monitor}/explain", summary="Explain what KEDA was answered at a point in time, and why")
async def explain(
    tenant: Viewer, verdicts: Annotated[VerdictStore, part("verdicts")], monitor: str, at: AtQuery = None
) -> ExplanationOut:
    at_ms = parse_time(at, "at")
    return await explain_answers(tenant, verdicts, check_name(monitor), at_ms)
