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
class FieldError:
    """One fault of the input: the field it is in, and what is wrong with the way out."""

    field: str
    text: str

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


class InvalidInput(LagscaleError):
    """The input has faults."""

    def __init__(self, field_errors: list[FieldError]) -> None:
        self.field_errors = field_errors
        super().__init__("; ".join(str(field_error) for field_error in field_errors))


class NotFound(LagscaleError):
    """There is no such object for this caller."""


class Conflict(LagscaleError):
    """An object with this name exists already."""


class PreconditionFailed(LagscaleError):
    """It is not in the state that the request asked for; read it again and repeat the change."""


class NotAuthenticated(LagscaleError):
    """A valid API key or bearer token is needed: send it as `Authorization: Bearer <key>`."""


class NotAllowed(LagscaleError):
    """This key may not do that."""


class QuotaExceeded(LagscaleError):
    """The tenant's quota is used up."""


class RateExceeded(QuotaExceeded):
    """Too many requests came in a short time; wait, then go on more slowly."""


class IssuerUnavailable(LagscaleError):
    """The issuer of bearer tokens does not answer, so no token can be checked; retry, or use an API key."""


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


class SecretReferenceBroken(LagscaleError):
    """A secret's reference leads to nothing that can be used."""


class TokenUnavailable(LagscaleError):
    """No access token for the Kafka cluster could be had."""


class LeaseLost(LagscaleError):
    """Another scraper leads; this one writes nothing."""


class ClusterUnreachable(LagscaleError):
    """The Kafka cluster does not answer."""


class SettingsInvalid(LagscaleError):
    """The settings have faults."""
