"""Which problems an operation may answer with, for the OpenAPI document: all that its kind of request can meet."""

from __future__ import annotations

from typing import Any

from services.api.problems import Problem

_DESCRIPTIONS = {
    401: "No valid key or token.",
    403: "The key's role does not allow it.",
    404: "No such object for this caller.",
    409: "The name is taken, or the object is in use.",
    412: "The object is not as `If-Match` or `If-None-Match` says.",
    413: "The body is too large.",
    415: "The body is not sent as JSON.",
    422: "Faults in the request; `errors` names each field.",
    429: "A quota is used up, or too many requests came; `Retry-After` tells when to go on.",
    500: "A defect.",
    503: "The store, or the tokens' issuer, does not answer; retry.",
}
#: Only a request with a body meets these.
_BODY_STATUSES = ("413", "415")
#: Only a change meets these.
_CHANGE_STATUSES = ("409", "412")
_RETRY_AFTER_HEADER = {
    "Retry-After": {"description": "Seconds until it is worth another try.", "schema": {"type": "integer"}}
}


def build_responses() -> dict[int | str, dict[str, Any]]:
    """The answers of a router's operations."""
    found: dict[int | str, dict[str, Any]] = {
        status: {"model": Problem, "description": text} for status, text in _DESCRIPTIONS.items()
    }
    found[401]["headers"] = {"WWW-Authenticate": {"description": "`Bearer`.", "schema": {"type": "string"}}}
    found[503]["headers"] = _RETRY_AFTER_HEADER
    return found


def remove_unreachable_responses(method: str, operation: dict[str, Any]) -> None:
    """Take out of an operation of the document what its requests cannot meet."""
    unmet = (*(_CHANGE_STATUSES if method == "get" else ()), *(() if "requestBody" in operation else _BODY_STATUSES))
    for status in unmet:
        operation["responses"].pop(status, None)
