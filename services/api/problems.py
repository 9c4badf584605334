"""Errors as application/problem+json (RFC 9457): the family of errors by table, and what the framework raises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from starlette.exceptions import HTTPException

from lagscale import errors
from lagscale.errors import Fault, LagscaleError
from services.api.fault_texts import fault_of
from services.api.problem_types import (
    BODY,
    FRAMEWORK,
    INTERNAL_ERROR,
    KINDS,
    TYPE,
    UNSUPPORTED_MEDIA_TYPE,
    Framework,
    kind_of,
    type_of,
)

log = structlog.get_logger(__name__)

MEDIA_TYPE = "application/problem+json"
STATUS: Mapping[type[LagscaleError], int] = {error: kind.status for error, kind in KINDS.items()}


class ProblemFault(BaseModel):
    """One fault of the request."""

    field: str = Field(examples=["policy.lagThreshold"])
    text: str = Field(examples=["must be at least 1, not 0"])


class Problem(BaseModel):
    """Why a request failed, and what to do."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:lagscale:problem:invalid-input",
                    "title": "The input has faults.",
                    "status": 422,
                    "detail": "policy.lagThreshold: must be at least 1, not 0",
                    "field": "policy.lagThreshold",
                    "wayOut": "Correct each field that `errors` names, then send the request again.",
                    "errors": [{"field": "policy.lagThreshold", "text": "must be at least 1, not 0"}],
                }
            ]
        },
    )

    type: str = Field(description="A URI that names the kind; docs/errors.md lists them.")
    title: str = Field(description="The kind in words.")
    status: int
    detail: str = Field(description="What is wrong here.")
    field: str | None = Field(
        description="What of the request is at fault: the first field of `errors`, a parameter, a header, `path`, "
        "`method` or `body`; null: nothing of the request is."
    )
    way_out: str = Field(description="What to do.")
    errors: list[ProblemFault] = Field(default=[], description="Every fault of the input.")


def status_of(error: LagscaleError) -> int:
    """The HTTP status of an error: its class's, else the nearest ancestor's."""
    return kind_of(error).status


def install(app: FastAPI) -> None:
    """Make every error of the app a problem."""
    app.add_exception_handler(LagscaleError, _of_family)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_framework)
    app.add_exception_handler(Exception, _of_defect)


def _answer(problem: Problem, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse(problem.model_dump(by_alias=True), problem.status, headers, media_type=MEDIA_TYPE)


async def _of_family(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, LagscaleError):
        raise error
    kind = kind_of(error)
    faults: Sequence[Fault] = error.faults if isinstance(error, errors.InvalidInput) else ()
    named = faults[0].field if faults else error.facts.get("field", kind.field)
    if kind.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.warning("request_failed", error=type(error).__name__, text=error.message)
    return _answer(
        Problem(
            type=type_of(type(error)),
            title=(type(error).__doc__ or "").strip(),
            status=kind.status,
            detail=error.message,
            field=None if named is None else str(named),
            way_out=kind.way_out,
            errors=[ProblemFault(field=fault.field, text=fault.text) for fault in faults],
        ),
        _headers(error, kind.status),
    )


def _headers(error: LagscaleError, status: int) -> dict[str, str]:
    headers: dict[str, str] = {}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = "1"
    if isinstance(seconds := error.facts.get("retry_after_seconds"), int):
        headers["Retry-After"] = str(seconds)
    return headers


async def _of_validation(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, RequestValidationError):
        raise error
    if error.body and isinstance(error.body, bytes):
        # The body was not read: what it was sent as is no JSON. Who called is known by now.
        return _of_route(UNSUPPORTED_MEDIA_TYPE)
    # The framework's errors hold the input, which may be a secret; only place, type and text are taken.
    return await _of_family(request, errors.InvalidInput([fault_of(fault) for fault in error.errors()]))


async def _of_framework(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    for kind in FRAMEWORK:
        if kind.status == error.status_code:
            return _of_route(kind, error.headers)
    if error.status_code == HTTPStatus.BAD_REQUEST:
        # All that the framework says so of: bytes that are no UTF-8, or brackets without an end.
        return await _of_family(request, errors.InvalidInput([Fault(BODY, "must be JSON in UTF-8, not nested deeply")]))
    # A path that is no route is answered like an object that is not there.
    return await _of_family(request, errors.NotFound())


def _of_route(kind: Framework, headers: Mapping[str, str] | None = None) -> JSONResponse:
    problem = Problem(
        type=TYPE + kind.name,
        title=kind.title,
        status=kind.status,
        detail=f"{kind.title} {kind.way_out}",
        field=kind.field,
        way_out=kind.way_out,
    )
    return _answer(problem, headers)


async def _of_defect(request: Request, error: Exception) -> JSONResponse:
    # The route and not the path: somebody may have put a secret there.
    route = getattr(request.scope.get("route"), "path", "none")
    log.error("request_broke", method=request.method, route=route, exc_info=error)
    return _of_route(INTERNAL_ERROR)
