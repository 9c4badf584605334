"""/v1/tenants/{tenant}/monitors/{monitor}/explain: a moment explained."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from lagscale.errors import Fault, InvalidInput
from lagscale.store.registry.history import milliseconds
from lagscale.store.samples.columns import instant
from services.api.auth.access import Viewer
from services.api.deps import Tenant, existing
from services.api.explain.explanation import Explanations
from services.api.explain.schemas import ExplanationOut

router = APIRouter(prefix="/v1/tenants/{tenant}/monitors", tags=["monitors"])

_FORM = "must be a time with its zone, as in 2030-01-31T12:00:00Z, or milliseconds since 1970"
#: A plus sign that nobody encoded arrives as a space.
_LOST_PLUS = re.compile(r"(T\S+) (\d\d:?\d\d)")
_LATEST = instant(0) + timedelta(days=365 * 1000)


def _explanations(request: Request) -> Explanations:
    found: Explanations = request.app.state.explanations
    return found


def _at(
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
    return None if at is None else moment_of(at)


def moment_of(text: str) -> int:
    """Milliseconds since 1970.

    Raises:
        InvalidInput: it is neither a time with its zone nor a number.
    """
    text = text.strip()
    if re.fullmatch(r"\d{1,14}", text, re.ASCII):
        return int(text)
    try:
        moment = datetime.fromisoformat(_LOST_PLUS.sub(r"\1+\2", text))
    except ValueError:
        raise InvalidInput([Fault("at", _FORM)]) from None
    if moment.tzinfo is None or not instant(0) <= moment <= _LATEST:
        raise InvalidInput([Fault("at", _FORM)])
    return milliseconds(moment)


Moment = Annotated[int | None, Depends(_at)]
ExplanationsPart = Annotated[Explanations, Depends(_explanations)]


@router.get("/{monitor}/explain", summary="Explain a moment: what the samples say, and what KEDA was told")
async def explain(
    caller: Viewer, explanations: ExplanationsPart, tenant: Tenant, monitor: str, at: Moment
) -> ExplanationOut:
    return await explanations.explain(caller.scope, tenant, existing(monitor), at)
