"""The family of errors. The docstring of a class is its default message; facts are attributes.

Edges translate the family by table: gRPC codes in `services/scaler`, HTTP problems in `services/api`, exit codes
in `services/cli`.
"""

from __future__ import annotations

from dataclasses import dataclass


class LagscaleError(Exception):
    """Internal error in Lagscale."""

    def __init__(self, message: str | None = None, **facts: object) -> None:
        self.facts = facts
        super().__init__(message or (type(self).__doc__ or "").strip())

    @property
    def message(self) -> str:
        """The text for users; it contains no secret, no address and no name of another tenant."""
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class FieldError:
    """One validation error: the field, and a text with the problem and its remediation."""

    field: str
    text: str

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


class InvalidInput(LagscaleError):
    """The request is invalid."""

    def __init__(self, field_errors: list[FieldError]) -> None:
        self.field_errors = field_errors
        super().__init__("; ".join(str(field_error) for field_error in field_errors))

    @classmethod
    def of(cls, field: str, text: str) -> InvalidInput:
        """One error of one field."""
        return cls([FieldError(field, text)])


class NotFound(LagscaleError):
    """Object not found."""


class Conflict(LagscaleError):
    """An object with this name already exists."""


class PreflightRunning(Conflict):
    """A preflight of this cluster is already running; retry in a few seconds."""


class PreconditionFailed(LagscaleError):
    """The object was changed in the meantime; read it again and repeat the change."""


class NotAuthenticated(LagscaleError):
    """Authentication required: send a valid API key or bearer token as `Authorization: Bearer <key>`."""


class NotAllowed(LagscaleError):
    """Permission denied for this key."""


class QuotaExceeded(LagscaleError):
    """Tenant quota exceeded."""


class RateExceeded(QuotaExceeded):
    """Rate limit exceeded; retry later at a lower rate."""


class IssuerUnavailable(LagscaleError):
    """The token issuer is unavailable, so bearer tokens cannot be verified; retry, or use an API key."""


class Unknown(LagscaleError):
    """The lag is unknown, and there is no last-known answer."""


class HistoryTooShort(Unknown):
    """Not enough history for a verdict, or nothing to measure."""


class DataUnavailable(Unknown):
    """Samples are stale or incomplete."""


class StoreUnavailable(LagscaleError):
    """The store is unavailable; retry."""


class StoreTimeout(StoreUnavailable):
    """The store timed out; retry."""


class SecretsUnreadable(LagscaleError):
    """A stored secret cannot be decrypted; add the key that encrypted it to LAGSCALE_SECRET_KEYS."""


class SecretReferenceBroken(LagscaleError):
    """A secret reference cannot be resolved."""


class TokenUnavailable(LagscaleError):
    """No access token for the Kafka cluster is available."""


class LeaseLost(LagscaleError):
    """Another scraper holds the lease; nothing was written."""


class ClusterUnreachable(LagscaleError):
    """The Kafka cluster is unreachable."""


class SettingsInvalid(LagscaleError):
    """The settings are invalid."""
