"""The REST API as the commands use it: answers as plain data, problems as the family's errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

import httpx

from lagscale import errors
from lagscale.errors import FieldError, LagscaleError
from services.cli.settings import CliSettings

_SECONDS = 10.0
#: A registration looks at its cluster, and one request may change hundreds of monitors.
_WRITE_SECONDS = 30.0
#: How often a call is repeated that was answered so, and the longest wait for that, seconds.
_RETRIES: Mapping[int, int] = {HTTPStatus.TOO_MANY_REQUESTS: 10, HTTPStatus.SERVICE_UNAVAILABLE: 2}
_MAX_RETRY_AFTER = 60
#: The API's problem types -> the family.
_PROBLEM_TYPE_ERRORS: Mapping[str, type[LagscaleError]] = {
    "not-found": errors.NotFound,
    "conflict": errors.Conflict,
    "precondition-failed": errors.PreconditionFailed,
    "not-authenticated": errors.NotAuthenticated,
    "not-allowed": errors.NotAllowed,
    "quota-exceeded": errors.QuotaExceeded,
    "rate-exceeded": errors.RateExceeded,
    "issuer-unavailable": errors.IssuerUnavailable,
    "store-unavailable": errors.StoreUnavailable,
    "store-timeout": errors.StoreTimeout,
}
#: For problems that a later API names and this command does not know: their status says enough.
_STATUS_ERRORS: Mapping[int, type[LagscaleError]] = {
    401: errors.NotAuthenticated,
    403: errors.NotAllowed,
    404: errors.NotFound,
    409: errors.Conflict,
    412: errors.Conflict,
    429: errors.QuotaExceeded,
    503: errors.StoreUnavailable,
}


class ApiClient:
    """One connection to the API."""

    def __init__(
        self,
        settings: CliSettings,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Connect at the first request; a test hands over a transport and how to wait."""
        key = "" if settings.api_key is None else settings.api_key.get_secret_value().strip()
        if not key.isascii() or not key.isprintable() or " " in key:
            raise errors.SettingsInvalid("LAGSCALE_API_KEY: must be one line of ASCII without spaces, as it was shown.")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._url = settings.api_url
        self._sleep = sleep
        self._http = httpx.Client(base_url=settings.api_url, headers=headers, timeout=_SECONDS, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._http.close()

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The answer to a GET.

        Raises:
            LagscaleError: what the API's problem says.
            StoreUnavailable: the API does not answer.
        """
        data: dict[str, Any] = self._request_with_retry("GET", path, params=dict(query or {})).json()
        return data

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The answer to a change; empty where it has none.

        Raises:
            LagscaleError: what the API's problem says.
            StoreUnavailable: the API does not answer; whether the change was made is not known.
        """
        answer = self._request_with_retry(method, path, json=None if body is None else dict(body))
        data: dict[str, Any] = answer.json() if answer.content else {}
        return data

    def write(
        self, method: str, path: str, body: Mapping[str, Any], *, version: int | None = None
    ) -> tuple[dict[str, Any], bool]:
        """The answer to a PUT or POST, and whether it created something.

        Args:
            method: of HTTP.
            path: with its query.
            body: what is sent.
            version: the version that was read: a later one is not overwritten.

        Raises:
            LagscaleError: as `get`.
        """
        answer = self._request_with_retry(
            method, path, json=dict(body), headers=_precondition_headers(version), timeout=_WRITE_SECONDS
        )
        return answer.json(), answer.status_code == HTTPStatus.CREATED

    def delete(self, path: str, *, version: int | None = None) -> None:
        """Delete an object; the arguments and errors are those of `write`."""
        self._request_with_retry("DELETE", path, headers=_precondition_headers(version))

    def _request_with_retry(self, method: str, path: str, **rest: Any) -> httpx.Response:
        answer = self._request(method, path, **rest)
        for _ in range(_RETRIES.get(answer.status_code, 0)):
            # Too many calls a second, or a store that was busy: the API says when there may be room again.
            after = answer.headers.get("Retry-After", "")
            if answer.status_code not in _RETRIES or not after.isdecimal() or int(after) > _MAX_RETRY_AFTER:
                break
            self._sleep(int(after))
            answer = self._request(method, path, **rest)
        if answer.is_error:
            raise _build_error(answer)
        return answer

    def _request(self, method: str, path: str, **rest: Any) -> httpx.Response:
        try:
            return self._http.request(method, path, **rest)
        except httpx.HTTPError as wrong:
            raise errors.StoreUnavailable(
                f"The API does not answer at {self._url}; check LAGSCALE_API_URL, or start it."
            ) from wrong

    def stream_lines(self, path: str, query: Mapping[str, str] | None = None) -> Iterator[str]:
        """The lines of a streamed answer, as they come.

        Raises:
            LagscaleError: what the API's problem says.
            StoreUnavailable: the API does not answer, or the answer broke off.
        """
        try:
            with self._http.stream("GET", path, params=dict(query or {})) as answer:
                if answer.is_error:
                    answer.read()
                    raise _build_error(answer)
                yield from answer.iter_lines()
        except httpx.HTTPError as wrong:
            raise errors.StoreUnavailable(
                f"The API at {self._url} does not answer, or broke off: what came is not all of it. Try again."
            ) from wrong


def _precondition_headers(version: int | None) -> dict[str, str]:
    return {} if version is None else {"If-Match": f'"{version}"'}


def _build_error(answer: httpx.Response) -> LagscaleError:
    try:
        problem = answer.json()
        name = str(problem["type"]).rpartition(":")[2]
        if name == "invalid-input":
            return errors.InvalidInput(
                [FieldError(field_error["field"], field_error["text"]) for field_error in problem["errors"]]
            )
        kind = _PROBLEM_TYPE_ERRORS.get(name) or _STATUS_ERRORS.get(answer.status_code, LagscaleError)
        return kind(str(problem["detail"]))
    except (ValueError, KeyError, TypeError):
        return LagscaleError(f"The API answered {answer.status_code} without saying why; is this address the API's?")


def check_health(url: str) -> tuple[bool, str]:
    """Whether a service says that all is well, and its words; never raises."""
    try:
        answer = httpx.get(f"{url.rstrip('/')}/healthz", timeout=_SECONDS)
        status = answer.json()
    except (httpx.HTTPError, ValueError):
        return False, "does not answer"
    summary = (
        ", ".join(f"{name}: {value}" for name, value in status.items()) if isinstance(status, dict) else str(status)
    )
    return answer.is_success, summary
