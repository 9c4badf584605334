"""HTTP client of the REST API: responses as plain data, problems as the family's errors."""

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

_TIMEOUT_SECONDS = 10.0
#: A registration probes its cluster, and one request may change hundreds of monitors.
_WRITE_TIMEOUT_SECONDS = 30.0
#: Status -> how often the request is repeated, and the longest wait for that, seconds.
_RETRIES: Mapping[int, int] = {HTTPStatus.TOO_MANY_REQUESTS: 10, HTTPStatus.SERVICE_UNAVAILABLE: 2}
_MAX_RETRY_AFTER = 60
#: Problem types of the API -> the family.
_PROBLEM_TYPE_ERRORS: Mapping[str, type[LagscaleError]] = {
    "not-found": errors.NotFound,
    "conflict": errors.Conflict,
    "precondition-failed": errors.PreconditionFailed,
    "not-authenticated": errors.NotAuthenticated,
    "forbidden": errors.NotAllowed,
    "quota-exceeded": errors.QuotaExceeded,
    "rate-limit-exceeded": errors.RateExceeded,
    "token-issuer-unavailable": errors.IssuerUnavailable,
    "store-unavailable": errors.StoreUnavailable,
    "store-timeout": errors.StoreTimeout,
}
#: For problem types that only a later API has: the status says enough.
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
    """One connection to the API, opened by the first request."""

    def __init__(
        self,
        settings: CliSettings,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        timeout: float = _TIMEOUT_SECONDS,
    ) -> None:
        """Configure the client.

        Args:
            settings: the API's address and the key.
            transport: for tests: answers in place of the network.
            sleep: for tests: waits before a request is repeated.
            timeout: seconds that a read may take.
        """
        key = "" if settings.api_key is None else settings.api_key.get_secret_value().strip()
        if not key.isascii() or not key.isprintable() or " " in key:
            raise errors.SettingsInvalid("LAGSCALE_API_KEY: must be one line of ASCII without spaces.")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._url = settings.api_url
        self._sleep = sleep
        self._http = httpx.Client(base_url=settings.api_url, headers=headers, timeout=timeout, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._http.close()

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The body of the response to a GET.

        Raises:
            LagscaleError: the problem that the API reports.
            StoreUnavailable: the API is not reachable.
        """
        data: dict[str, Any] = self._request_with_retry("GET", path, params=dict(query or {})).json()
        return data

    def list_items(self, path: str, *, page_size: int | None = None) -> Iterator[dict[str, Any]]:
        """The items of a listing, page by page; the errors are those of `get`."""
        query = {} if page_size is None else {"limit": str(page_size)}
        while True:
            page = self.get(path, query)
            yield from page["items"]
            if page["next"] is None:
                return
            query["cursor"] = page["next"]

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The body of the response to a change; empty if there is none.

        Raises:
            LagscaleError: the problem that the API reports.
            StoreUnavailable: the API is not reachable; the change may have been made.
        """
        response = self._request_with_retry(method, path, json=None if body is None else dict(body))
        data: dict[str, Any] = response.json() if response.content else {}
        return data

    def write(
        self, method: str, path: str, body: Mapping[str, Any], *, version: int | None = None
    ) -> tuple[dict[str, Any], bool]:
        """The body of the response to a PUT or POST, and whether it created something.

        Args:
            method: HTTP method.
            path: path and query.
            body: JSON body.
            version: the version that was read; a later one is not overwritten.

        Raises:
            LagscaleError: as `get`.
        """
        response = self._request_with_retry(
            method, path, json=dict(body), headers=_precondition_headers(version), timeout=_WRITE_TIMEOUT_SECONDS
        )
        return response.json(), response.status_code == HTTPStatus.CREATED

    def delete(self, path: str, *, version: int | None = None) -> None:
        """Delete an object; the arguments and errors are those of `write`."""
        self._request_with_retry("DELETE", path, headers=_precondition_headers(version))

    def _request_with_retry(self, method: str, path: str, **rest: Any) -> httpx.Response:
        response = self._request(method, path, **rest)
        for _ in range(_RETRIES.get(response.status_code, 0)):
            # Rate limit exceeded, or the store was busy: the API says when to retry.
            after = response.headers.get("Retry-After", "")
            if response.status_code not in _RETRIES or not after.isdecimal() or int(after) > _MAX_RETRY_AFTER:
                break
            self._sleep(int(after))
            response = self._request(method, path, **rest)
        if response.is_error:
            raise _build_error(response)
        return response

    def _request(self, method: str, path: str, **rest: Any) -> httpx.Response:
        try:
            return self._http.request(method, path, **rest)
        except httpx.HTTPError as error:
            raise errors.StoreUnavailable(
                f"Cannot connect to the Lagscale API at {self._url}; check LAGSCALE_API_URL and that the API is running."
            ) from error

    def stream_lines(self, path: str, query: Mapping[str, str] | None = None) -> Iterator[str]:
        """The lines of a streamed response, as they arrive.

        Raises:
            LagscaleError: the problem that the API reports.
            StoreUnavailable: the API is not reachable, or the response is incomplete.
        """
        try:
            with self._http.stream("GET", path, params=dict(query or {})) as response:
                if response.is_error:
                    response.read()
                    raise _build_error(response)
                yield from response.iter_lines()
        except httpx.HTTPError as error:
            raise errors.StoreUnavailable(
                f"Connection to the Lagscale API at {self._url} failed or was interrupted; the response is incomplete. Retry."
            ) from error


def _precondition_headers(version: int | None) -> dict[str, str]:
    return {} if version is None else {"If-Match": f'"{version}"'}


def _build_error(response: httpx.Response) -> LagscaleError:
    try:
        problem = response.json()
        name = str(problem["type"]).rpartition(":")[2]
        if name == "invalid-input":
            return errors.InvalidInput(
                [FieldError(field_error["field"], field_error["text"]) for field_error in problem["errors"]]
            )
        kind = _PROBLEM_TYPE_ERRORS.get(name) or _STATUS_ERRORS.get(response.status_code, LagscaleError)
        return kind(str(problem["detail"]))
    except (ValueError, KeyError, TypeError):
        return LagscaleError(
            f"Unexpected response {response.status_code}; check that LAGSCALE_API_URL is the URL of the API."
        )


def check_health(url: str) -> tuple[bool, str]:
    """Whether a service is healthy, and a summary of its checks; never raises."""
    try:
        response = httpx.get(f"{url.rstrip('/')}/healthz", timeout=_TIMEOUT_SECONDS)
        status = response.json()
    except (httpx.HTTPError, ValueError):
        return False, "unreachable"
    summary = (
        ", ".join(f"{name}: {value}" for name, value in status.items()) if isinstance(status, dict) else str(status)
    )
    return response.is_success, summary
