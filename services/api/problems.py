"""Errors as application/problem+json (RFC 9457): the family of errors by table, and what the framework raises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from lagscale import errors
from lagscale.errors import Fault, LagscaleError

log = structlog.get_logger(__name__)

MEDIA_TYPE = "application/problem+json"
_TYPE = "urn:lagscale:problem:"

#: Every class of the family has its status; a test walks all subclasses and fails on one that is not here.
STATUS: Mapping[type[LagscaleError], int] = {
    LagscaleError: 500,
    errors.InvalidInput: 422,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.NotAuthenticated: 401,
    errors.NotAllowed: 403,
    errors.QuotaExceeded: 429,
    errors.RateExceeded: 429,
    errors.Unknown: 503,
    errors.HistoryTooShort: 503,
    errors.DataUnavailable: 503,
    errors.StoreUnavailable: 503,
    errors.StoreTimeout: 503,
    errors.SecretsUnreadable: 500,
    errors.LeaseLost: 503,
    errors.ClusterUnreachable: 502,
    errors.SettingsInvalid: 500,
}


class ProblemFault(BaseModel):
    """One fault of the request."""

    field: str = Field(examples=["policy.lagThreshold"])
    text: str = Field(examples=["must be at least 1, not 0"])


class Problem(BaseModel):
    """Why a request failed, and what to do."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:lagscale:problem:invalid-input",
                    "title": "The input has faults.",
                    "status": 422,
                    "detail": "policy.lagThreshold: must be at least 1, not 0",
                    "errors": [{"field": "policy.lagThreshold", "text": "must be at least 1, not 0"}],
                }
            ]
        }
    )

    type: str
    title: str
    status: int
    detail: str
    errors: list[ProblemFault] = []


def status_of(error: LagscaleError) -> int:
    """The HTTP status of an error: its class's, else the nearest ancestor's."""
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def install(app: FastAPI) -> None:
    """Make every error of the app a problem."""
    app.add_exception_handler(LagscaleError, _of_family)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_framework)
    app.add_exception_handler(Exception, _of_defect)


def _name(kind: type[Exception]) -> str:
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in kind.__name__).lstrip("-")


def _answer(
    problem: Problem,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    return JSONResponse(problem.model_dump(), problem.status, headers, media_type=MEDIA_TYPE)


async def _of_family(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, LagscaleError):
        raise error
    status = status_of(error)
    faults: Sequence[Fault] = error.faults if isinstance(error, errors.InvalidInput) else ()
    headers: dict[str, str] = {}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = "1"
    if isinstance(error, errors.RateExceeded):
        headers["Retry-After"] = str(error.facts.get("retry_after", 1))
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.warning("request_failed", error=type(error).__name__, text=error.message)
    kind = type(error)
    return _answer(
        Problem(
            type=_TYPE + _name(kind),
            title=(kind.__doc__ or "").strip(),
            status=status,
            detail=error.message,
            errors=[ProblemFault(field=fault.field, text=fault.text) for fault in faults],
        ),
        headers,
    )


async def _of_validation(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, RequestValidationError):
        raise error
    # The framework's errors hold the input, which may be a secret; only place and text are taken.
    faults = [Fault(_field(fault["loc"]), str(fault["msg"]).removeprefix("Value error, ")) for fault in error.errors()]
    return await _of_family(request, errors.InvalidInput(faults))


def _field(location: Sequence[int | str]) -> str:
    # ("body", "topics", 0) -> "topics.0"; a body that is no JSON has a byte's number there.
    path = [str(part) for part in location[1:]]
    return ".".join(path) if path and not path[0].isdecimal() else str(location[0])


async def _of_framework(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == HTTPStatus.NOT_FOUND:
        # A path that is no route is answered like an object that is not there.
        return await _of_family(_request, errors.NotFound())
    phrase = HTTPStatus(error.status_code).phrase
    name = phrase.lower().replace(" ", "-")
    text = "This path does not know that method." if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED else phrase
    return _answer(Problem(type=_TYPE + name, title=phrase, status=error.status_code, detail=text), error.headers)


async def _of_defect(request: Request, error: Exception) -> JSONResponse:
    log.error("request_broke", method=request.method, path=request.url.path, exc_info=error)
    return _answer(
        Problem(
            type=_TYPE + "internal-error",
            title="Something went wrong in Lagscale.",
            status=500,
            detail="The request met a defect; the API's log has it. Nothing was changed.",
        )
    )
