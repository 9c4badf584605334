"""One family of errors. The docstring of a class is its default message; facts are attributes.

Edges translate the family by table: gRPC codes in `services/scaler`, HTTP problems in `services/api`, exit codes
in `services/cli`.
"""

from __future__ import annotations

from dataclasses import dataclass


class LagscaleError(Exception):
    """Something went wrong in Lagscale."""

    def __init__(self, message: str | None = None, **facts: object) -> None:
        self.facts = facts
        super().__init__(message or (type(self).__doc__ or "").strip())

    @property
    def message(self) -> str:
        """The text that a user reads; it holds no secret, no address and no other tenant's name."""
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of the input: the field it is in, and what is wrong with the way out."""

    field: str
    text: str

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


class InvalidInput(LagscaleError):
    """The input has faults."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = faults
        super().__init__("; ".join(str(fault) for fault in faults))


class NotFound(LagscaleError):
    """There is no such object for this caller."""


class Conflict(LagscaleError):
    """An object with this name exists already."""


class NotAuthenticated(LagscaleError):
    """A valid API key is needed: send it as `Authorization: Bearer <key>`."""


class NotAllowed(LagscaleError):
    """This key may not do that."""


class QuotaExceeded(LagscaleError):
    """The tenant's quota is used up."""


class RateExceeded(QuotaExceeded):
    """Too many calls in a short time; wait a moment. `retry_after` of the facts is in seconds."""


class Unknown(LagscaleError):
    """The lag is not known, and nothing can be held."""


class HistoryTooShort(Unknown):
    """There is too little history to judge, or nothing to measure."""


class DataUnavailable(Unknown):
    """The data are stale or incomplete."""


class StoreUnavailable(LagscaleError):
    """The store does not answer; retry."""


class StoreTimeout(StoreUnavailable):
    """The store did not answer in time; retry."""


class SecretsUnreadable(LagscaleError):
    """A stored secret cannot be decrypted with the present keys; set LAGSCALE_SECRET_KEYS to the set that wrote it."""


class LeaseLost(LagscaleError):
    """Another scraper leads; this one writes nothing."""


class ClusterUnreachable(LagscaleError):
    """The Kafka cluster does not answer."""


class SettingsInvalid(LagscaleError):
    """The settings have faults."""
