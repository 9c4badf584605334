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
from lagscale.errors import FieldError, LagscaleError
from services.api.fault_texts import parse_framework_error
from services.api.problem_types import (
    BODY,
    FRAMEWORK_PROBLEM_TYPES,
    INTERNAL_ERROR,
    PROBLEM_TYPES,
    TYPE_PREFIX,
    UNSUPPORTED_MEDIA_TYPE,
    FrameworkProblemType,
    build_type_uri,
    find_problem_type,
)

log = structlog.get_logger(__name__)

MEDIA_TYPE = "application/problem+json"
STATUS: Mapping[type[LagscaleError], int] = {
    error: problem_type.status for error, problem_type in PROBLEM_TYPES.items()
}


class ProblemFieldError(BaseModel):
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
                    "remediation": "Correct each field that `errors` names, then send the request again.",
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
    remediation: str = Field(description="What to do.")
    errors: list[ProblemFieldError] = Field(default=[], description="Every fault of the input.")


def find_status(error: LagscaleError) -> int:
    """The HTTP status of an error: its class's, else the nearest ancestor's."""
    return find_problem_type(error).status


def install_error_handlers(app: FastAPI) -> None:
    """Make every error of the app a problem."""
    app.add_exception_handler(LagscaleError, _handle_lagscale_error)
    app.add_exception_handler(RequestValidationError, _handle_validation_error)
    app.add_exception_handler(HTTPException, _handle_http_error)
    app.add_exception_handler(Exception, _handle_unexpected_error)


def _respond(problem: Problem, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse(problem.model_dump(by_alias=True), problem.status, headers, media_type=MEDIA_TYPE)


async def _handle_lagscale_error(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, LagscaleError):
        raise error
    problem_type = find_problem_type(error)
    field_errors: Sequence[FieldError] = error.field_errors if isinstance(error, errors.InvalidInput) else ()
    field_name = field_errors[0].field if field_errors else error.facts.get("field", problem_type.field)
    if problem_type.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.warning("request_failed", error=type(error).__name__, text=error.message)
    return _respond(
        Problem(
            type=build_type_uri(type(error)),
            title=(type(error).__doc__ or "").strip(),
            status=problem_type.status,
            detail=error.message,
            field=None if field_name is None else str(field_name),
            remediation=problem_type.remediation,
            errors=[ProblemFieldError(field=field_error.field, text=field_error.text) for field_error in field_errors],
        ),
        _build_headers(error, problem_type.status),
    )


def _build_headers(error: LagscaleError, status: int) -> dict[str, str]:
    headers: dict[str, str] = {}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = "1"
    if isinstance(seconds := error.facts.get("retry_after_seconds"), int):
        headers["Retry-After"] = str(seconds)
    return headers


async def _handle_validation_error(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, RequestValidationError):
        raise error
    if error.body and isinstance(error.body, bytes):
        # The body was not read: what it was sent as is no JSON. Who called is known by now.
        return _respond_by_type(UNSUPPORTED_MEDIA_TYPE)
    # The framework's errors hold the input, which may be a secret; only place, type and text are taken.
    return await _handle_lagscale_error(
        request, errors.InvalidInput([parse_framework_error(field_error) for field_error in error.errors()])
    )


async def _handle_http_error(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    for problem_type in FRAMEWORK_PROBLEM_TYPES:
        if problem_type.status == error.status_code:
            return _respond_by_type(problem_type, error.headers)
    if error.status_code == HTTPStatus.BAD_REQUEST:
        # All that the framework says so of: bytes that are no UTF-8, or brackets without an end.
        return await _handle_lagscale_error(
            request, errors.InvalidInput([FieldError(BODY, "must be JSON in UTF-8, not nested deeply")])
        )
    # A path that is no route is answered like an object that is not there.
    return await _handle_lagscale_error(request, errors.NotFound())


def _respond_by_type(problem_type: FrameworkProblemType, headers: Mapping[str, str] | None = None) -> JSONResponse:
    problem = Problem(
        type=TYPE_PREFIX + problem_type.name,
        title=problem_type.title,
        status=problem_type.status,
        detail=f"{problem_type.title} {problem_type.remediation}",
        field=problem_type.field,
        remediation=problem_type.remediation,
    )
    return _respond(problem, headers)


async def _handle_unexpected_error(request: Request, error: Exception) -> JSONResponse:
    # The route and not the path: somebody may have put a secret there.
    route = getattr(request.scope.get("route"), "path", "none")
    log.error("request_broke", method=request.method, route=route, exc_info=error)
    return _respond_by_type(INTERNAL_ERROR)
