"""The REST API as the commands use it: answers as plain data, problems as the family's errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import httpx

from lagscale import errors
from lagscale.errors import Fault, LagscaleError
from services.cli.settings import CliSettings

_SECONDS = 10.0
#: The API's problem types -> the family.
_PROBLEMS: Mapping[str, type[LagscaleError]] = {
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


class Client:
    """One connection to the API."""

    def __init__(self, settings: CliSettings, transport: httpx.BaseTransport | None = None) -> None:
        """Connect at the first request; a test hands over a transport."""
        key = settings.api_key
        headers = {} if key is None else {"Authorization": f"Bearer {key.get_secret_value()}"}
        self._url = settings.api_url
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
        try:
            answer = self._http.get(path, params=dict(query or {}))
        except httpx.HTTPError as wrong:
            raise errors.StoreUnavailable(
                f"The API does not answer at {self._url}; check LAGSCALE_API_URL, or start it."
            ) from wrong
        if answer.is_error:
            raise _problem(answer)
        found: dict[str, Any] = answer.json()
        return found

    def lines(self, path: str, query: Mapping[str, str] | None = None) -> Iterator[str]:
        """The lines of a streamed answer, as they come.

        Raises:
            LagscaleError: what the API's problem says.
            StoreUnavailable: the API does not answer, or the answer broke off.
        """
        try:
            with self._http.stream("GET", path, params=dict(query or {})) as answer:
                if answer.is_error:
                    answer.read()
                    raise _problem(answer)
                yield from answer.iter_lines()
        except httpx.HTTPError as wrong:
            raise errors.StoreUnavailable(
                f"The API at {self._url} does not answer, or broke off: what came is not all of it. Try again."
            ) from wrong


def _problem(answer: httpx.Response) -> LagscaleError:
    try:
        problem = answer.json()
        name = str(problem["type"]).rpartition(":")[2]
        if name == "invalid-input":
            return errors.InvalidInput([Fault(fault["field"], fault["text"]) for fault in problem["errors"]])
        return _PROBLEMS.get(name, LagscaleError)(str(problem["detail"]))
    except (ValueError, KeyError, TypeError):
        return LagscaleError(f"The API answered {answer.status_code} without saying why; is this address the API's?")


def health(url: str) -> tuple[bool, str]:
    """Whether a service says that all is well, and its words; never raises."""
    try:
        answer = httpx.get(f"{url.rstrip('/')}/healthz", timeout=_SECONDS)
        words = answer.json()
    except (httpx.HTTPError, ValueError):
        return False, "does not answer"
    said = ", ".join(f"{name}: {value}" for name, value in words.items()) if isinstance(words, dict) else str(words)
    return answer.is_success, said
