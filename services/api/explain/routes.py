"""/v1/tenants/{tenant}/monitors/{monitor}/explain: a moment explained."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from lagscale.clock import to_datetime, to_ms
from lagscale.errors import FieldError, InvalidInput
from services.api.auth.authenticator import Viewer
from services.api.deps import Tenant, check_name
from services.api.explain.explanation import Explanations
from services.api.explain.schemas import ExplanationOut

router = APIRouter(prefix="/v1/tenants/{tenant}/monitors", tags=["monitors"])

_FORM = "must be a time with its zone, as in 2030-01-31T12:00:00Z, or milliseconds since 1970"
#: A plus sign that nobody encoded arrives as a space.
_LOST_PLUS = re.compile(r"(T\S+) (\d\d:?\d\d)")
_LATEST = to_datetime(0) + timedelta(days=365 * 1000)


def _get_explanations(request: Request) -> Explanations:
    part: Explanations = request.app.state.explanations
    return part


def _read_at(
    at: Annotated[
        str | None,
        Query(
            max_length=64,
            description="The moment: ISO 8601 with its zone, or milliseconds since 1970; now, if it is left out.",
            openapi_examples={
                "time": {"value": "2030-01-31T12:00:00Z"},
                "milliseconds": {"value": "1896091200000"},
            },
        ),
    ] = None,
) -> int | None:
    return None if at is None else parse_time(at)


def parse_time(text: str) -> int:
    """Milliseconds since 1970.

    Raises:
        InvalidInput: it is neither a time with its zone nor a number.
    """
    text = text.strip()
    if re.fullmatch(r"\d{1,14}", text, re.ASCII):
        return int(text)
    try:
        parsed = datetime.fromisoformat(_LOST_PLUS.sub(r"\1+\2", text))
    except ValueError:
        raise InvalidInput([FieldError("at", _FORM)]) from None
    if parsed.tzinfo is None or not to_datetime(0) <= parsed <= _LATEST:
        raise InvalidInput([FieldError("at", _FORM)])
    return to_ms(parsed)


AtQuery = Annotated[int | None, Depends(_read_at)]
ExplanationsPart = Annotated[Explanations, Depends(_get_explanations)]


@router.get("/{monitor}/explain", summary="Explain a moment: what the samples say, and what KEDA was told")
async def explain(
    caller: Viewer, explanations: ExplanationsPart, tenant: Tenant, monitor: str, at: AtQuery
) -> ExplanationOut:
    return await explanations.explain(caller.scope, tenant, check_name(monitor), at)
