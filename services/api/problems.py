"""Errors as application/problem+json (RFC 9457): the family of errors by table, and the framework's; also for OpenAPI."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ConfigDict, Field
from starlette.exceptions import HTTPException

from lagscale import errors
from lagscale.errors import FieldError, LagscaleError
from services.api.problem_types import (
    BODY,
    FRAMEWORK_PROBLEM_TYPES,
    INTERNAL_ERROR,
    UNSUPPORTED_MEDIA_TYPE,
    ProblemType,
    find_problem_type,
)
from services.api.schemas import ApiSchema, FieldErrorOut

log = structlog.get_logger(__name__)

MEDIA_TYPE = "application/problem+json"

#: Message by the framework's type of error, where its own message contains no remediation.
_MESSAGES_BY_TYPE: Final[Mapping[str, str]] = {
    "missing": "must be given",
    "extra_forbidden": "unknown field; correct its name, or omit it",
    "json_invalid": "must be JSON in UTF-8",
    "model_attributes_type": "must be a JSON object",
    "model_type": "must be a JSON object",
    "dict_type": "must be a JSON object",
    "timezone_aware": "must have its time zone, as in 2030-01-31T12:00:00Z",
}
_MAX_NAME_LENGTH = 64
_SUBJECT = re.compile(r"^(?:Input|Value|String|List|Dictionary|Data|Number)\b(?: item)? should ")
_DESCRIPTIONS = {
    401: "Missing or invalid API key or bearer token.",
    403: "Permission denied for this key.",
    404: "Object not found.",
    409: "The name is taken, or the object is in use.",
    412: "The object does not match `If-Match` or `If-None-Match`.",
    413: "Request body too large.",
    415: "The content type is not JSON.",
    422: "Invalid request; `errors` lists the fields.",
    429: "Quota or rate limit exceeded; retry after `Retry-After`.",
    500: "Internal server error.",
    503: "The database or the token issuer is unavailable; retry after `Retry-After`.",
}
#: Only of requests with a body.
_BODY_STATUSES = ("413", "415")
#: Only of changes.
_CHANGE_STATUSES = ("409", "412")
_RETRY_AFTER_HEADER = {"Retry-After": {"description": "Seconds to wait before a retry.", "schema": {"type": "integer"}}}


class Problem(ApiSchema):
    """Why a request failed, and the remediation."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:lagscale:problem:invalid-input",
                    "title": "Invalid request.",
                    "status": 422,
                    "detail": "policy.lagThreshold: must be at least 1, not 0",
                    "field": "policy.lagThreshold",
                    "remediation": "Correct each field in `errors`, then retry.",
                    "errors": [{"field": "policy.lagThreshold", "text": "must be at least 1, not 0"}],
                }
            ]
        },
    )

    type: str = Field(description="URI of the problem type; docs/errors.md lists them.")
    title: str = Field(description="Title of the problem type.")
    status: int
    detail: str = Field(description="Cause of this problem.")
    field: str | None = Field(
        description="The part of the request at fault: the first field of `errors`, a parameter, a header, `path`, "
        "`method` or `body`; null if the request is not at fault."
    )
    remediation: str = Field(description="How to resolve it.")
    errors: list[FieldErrorOut] = Field(default=[], description="All invalid fields.")


def build_responses() -> dict[int | str, dict[str, Any]]:
    """The problem responses of a router's operations, for the OpenAPI document."""
    responses: dict[int | str, dict[str, Any]] = {
        status: {"model": Problem, "description": text} for status, text in _DESCRIPTIONS.items()
    }
    responses[401]["headers"] = {"WWW-Authenticate": {"description": "`Bearer`.", "schema": {"type": "string"}}}
    responses[503]["headers"] = _RETRY_AFTER_HEADER
    return responses


def remove_unreachable_responses(method: str, operation: dict[str, Any]) -> None:
    """Remove responses from an operation of the OpenAPI document that its requests cannot get."""
    unreachable = (
        *(_CHANGE_STATUSES if method == "get" else ()),
        *(() if "requestBody" in operation else _BODY_STATUSES),
    )
    for status in unreachable:
        operation["responses"].pop(status, None)


def install_error_handlers(app: FastAPI) -> None:
    """Return every error of the app as a problem document."""
    app.exception_handler(LagscaleError)(_handle_lagscale_error)
    app.exception_handler(RequestValidationError)(_handle_validation_error)
    app.exception_handler(HTTPException)(_handle_http_error)
    app.exception_handler(Exception)(_handle_unexpected_error)


def _respond(
    problem_type: ProblemType,
    detail: str,
    field: str | None,
    headers: Mapping[str, str] | None,
    field_errors: Sequence[FieldError] = (),
) -> JSONResponse:
    problem = Problem(
        type=problem_type.uri,
        title=problem_type.title,
        status=problem_type.status,
        detail=detail,
        field=field,
        remediation=problem_type.remediation,
        errors=[FieldErrorOut(field=field_error.field, text=field_error.text) for field_error in field_errors],
    )
    return JSONResponse(problem.model_dump(by_alias=True), problem.status, headers, media_type=MEDIA_TYPE)


def _respond_by_type(problem_type: ProblemType, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return _respond(problem_type, f"{problem_type.title} {problem_type.remediation}", problem_type.field, headers)


async def _handle_lagscale_error(_request: Request, error: LagscaleError) -> JSONResponse:
    problem_type = find_problem_type(error)
    field_errors: Sequence[FieldError] = error.field_errors if isinstance(error, errors.InvalidInput) else ()
    field_name = field_errors[0].field if field_errors else error.facts.get("field", problem_type.field)
    if problem_type.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.warning("request_failed", error=type(error).__name__, reason=error.message)
    field = None if field_name is None else str(field_name)
    return _respond(problem_type, error.message, field, _build_headers(error, problem_type.status), field_errors)


def _build_headers(error: LagscaleError, status: int) -> dict[str, str]:
    headers: dict[str, str] = {}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = "1"
    if isinstance(seconds := error.facts.get("retry_after_seconds"), int):
        headers["Retry-After"] = str(seconds)
    return headers


async def _handle_validation_error(request: Request, error: RequestValidationError) -> JSONResponse:
    if error.body and isinstance(error.body, bytes):
        # The body was not read, because its content type is not JSON. The caller is authenticated by now.
        return _respond_by_type(UNSUPPORTED_MEDIA_TYPE)
    # The framework's errors contain the input, which may be a secret; only location, type and message are used.
    return await _handle_lagscale_error(
        request, errors.InvalidInput([_parse_framework_error(field_error) for field_error in error.errors()])
    )


async def _handle_http_error(request: Request, error: HTTPException) -> JSONResponse:
    for problem_type in FRAMEWORK_PROBLEM_TYPES:
        if problem_type.status == error.status_code:
            return _respond_by_type(problem_type, error.headers)
    if error.status_code == HTTPStatus.BAD_REQUEST:
        # The framework answers so to bytes that are not UTF-8, or to deeply nested brackets.
        return await _handle_lagscale_error(
            request, errors.InvalidInput([FieldError(BODY, "must be JSON in UTF-8, not nested deeply")])
        )
    # A path without a route is answered like an object that does not exist.
    return await _handle_lagscale_error(request, errors.NotFound())


async def _handle_unexpected_error(request: Request, error: Exception) -> JSONResponse:
    # The route and not the path, which may contain a secret.
    route = getattr(request.scope.get("route"), "path", "none")
    log.error("request_error", method=request.method, route=route, exc_info=error)
    return _respond_by_type(INTERNAL_ERROR)


def _parse_framework_error(framework_error: Mapping[str, Any]) -> FieldError:
    """The error of a field, from one of the framework's, of which only location, type and message are read."""
    return FieldError(
        _build_field_path(framework_error["loc"]),
        _build_message(str(framework_error["type"]), str(framework_error["msg"])),
    )


def _build_message(error_type: str, framework_message: str) -> str:
    if error_type in _MESSAGES_BY_TYPE:
        return _MESSAGES_BY_TYPE[error_type]
    return _SUBJECT.sub("must ", framework_message.removeprefix("Value error, "))


def _build_field_path(location: tuple[int | str, ...]) -> str:
    # ("body", "topics", 0) -> "topics.0"; a body that is not JSON has the offset of a byte there.
    place, *path = location
    if not path or (isinstance(path[0], int) and len(path) == 1):
        return str(place)
    if place == "header":
        return "-".join(part.capitalize() for part in str(path[0]).split("-"))
    # Names that the caller chose are included, and may have any length.
    return ".".join(str(part)[:_MAX_NAME_LENGTH] for part in path)
