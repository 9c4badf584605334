"""HTTP client of the REST API: responses as plain data, problems as the family's errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Self

import httpx

from lagscale import errors
from lagscale.errors import FieldError, LagscaleError
from lagscale.settings import load
from services.cli.settings import CliSettings

_TIMEOUT_SECONDS = 10.0
#: A registration probes its cluster, and one request may change hundreds of monitors.
WRITE_TIMEOUT_SECONDS = 30.0
#: Status -> how often the request is repeated, and the longest wait for that, seconds.
_RETRIES: Mapping[int, int] = {HTTPStatus.TOO_MANY_REQUESTS: 10, HTTPStatus.SERVICE_UNAVAILABLE: 2}
_MAX_RETRY_AFTER = 60
_KEY_MISSING = "Authentication required: set LAGSCALE_API_KEY to an API key or a bearer token; it is empty."
_KEY_REJECTED = (
    "Authentication failed: the API does not accept the value of LAGSCALE_API_KEY, which is unknown, expired or revoked; set "
    "another one."
)
#: Problem types of the API -> the family.
_PROBLEM_TYPE_ERRORS: Mapping[str, type[LagscaleError]] = {
    "not-found": errors.NotFound,
    "conflict": errors.Conflict,
    "preflight-running": errors.PreflightRunning,
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
    """One connection to the API, opened by the first request.

    Every request raises the problem that the API reports, or `StoreUnavailable` if the API is not reachable.
    """

    def __init__(
        self,
        settings: CliSettings,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        timeout: float = _TIMEOUT_SECONDS,
    ) -> None:
        """Configure the client; a read may take `timeout` seconds. Tests give a transport and a sleep of their own."""
        key = "" if settings.api_key is None else settings.api_key.get_secret_value().strip()
        if not key.isascii() or not key.isprintable() or " " in key:
            raise errors.SettingsInvalid("LAGSCALE_API_KEY: must be one line of ASCII without spaces.")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._url = settings.api_url
        self._has_key = bool(key)
        self._sleep = sleep
        self._http = httpx.Client(base_url=settings.api_url, headers=headers, timeout=timeout, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The body of the response to a GET."""
        data: dict[str, Any] = self._request_with_retry("GET", path, params=query).json()
        return data

    def list_items(self, path: str, *, page_size: int | None = None) -> Iterator[dict[str, Any]]:
        """The items of a listing, page by page."""
        query = {} if page_size is None else {"limit": str(page_size)}
        while True:
            page = self.get(path, query)
            yield from page["items"]
            if page["next"] is None:
                return
            query["cursor"] = page["next"]

    def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        version: int | None = None,
        timeout: float = _TIMEOUT_SECONDS,
    ) -> tuple[dict[str, Any], bool]:
        """The body of the response to a change, empty if there is none, and whether something was created.

        With `version`, the one that was read, a later one is not overwritten. `timeout` is in seconds.

        Raises:
            StoreUnavailable: the API is not reachable; the change may have been made.
        """
        headers = {} if version is None else {"If-Match": f'"{version}"'}
        response = self._request_with_retry(method, path, json=body, headers=headers, timeout=timeout)
        return response.json() if response.content else {}, response.status_code == HTTPStatus.CREATED

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
            raise _build_error(response, has_key=self._has_key)
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
            StoreUnavailable: the API is not reachable, or the response is incomplete.
        """
        try:
            with self._http.stream("GET", path, params=query) as response:
                if response.is_error:
                    response.read()
                    raise _build_error(response, has_key=self._has_key)
                yield from response.iter_lines()
        except httpx.HTTPError as error:
            raise errors.StoreUnavailable(
                f"Connection to the Lagscale API at {self._url} failed or was interrupted; the response is incomplete. Retry."
            ) from error


def open_api(timeout: float = _TIMEOUT_SECONDS) -> ApiClient:
    """A client by the settings of the command; a read may take `timeout` seconds.

    Raises:
        SettingsInvalid: an environment variable is invalid.
    """
    return ApiClient(load(CliSettings), timeout=timeout)


def _build_error(response: httpx.Response, *, has_key: bool) -> LagscaleError:
    try:
        problem = response.json()
        name = str(problem["type"]).rpartition(":")[2]
        if name == "invalid-input":
            return errors.InvalidInput(
                [FieldError(field_error["field"], field_error["text"]) for field_error in problem["errors"]]
            )
        kind = _PROBLEM_TYPE_ERRORS.get(name) or _STATUS_ERRORS.get(response.status_code, LagscaleError)
        if kind is errors.NotAuthenticated:
            return kind(_KEY_REJECTED if has_key else _KEY_MISSING)
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
