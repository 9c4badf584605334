"""gRPC status codes of our errors, by table. Servicer and streams turn errors into statuses with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from grpc import StatusCode

from lagscale import errors

CODES: Final[Mapping[type[BaseException], StatusCode]] = {
    errors.LagscaleError: StatusCode.INTERNAL,
    errors.InvalidInput: StatusCode.INVALID_ARGUMENT,
    errors.NotFound: StatusCode.NOT_FOUND,
    errors.Conflict: StatusCode.ABORTED,
    errors.PreflightRunning: StatusCode.ABORTED,
    errors.PreconditionFailed: StatusCode.FAILED_PRECONDITION,
    errors.NotAuthenticated: StatusCode.UNAUTHENTICATED,
    errors.NotAllowed: StatusCode.PERMISSION_DENIED,
    errors.QuotaExceeded: StatusCode.RESOURCE_EXHAUSTED,
    errors.RateExceeded: StatusCode.RESOURCE_EXHAUSTED,
    errors.IssuerUnavailable: StatusCode.UNAVAILABLE,
    errors.Unknown: StatusCode.UNAVAILABLE,
    errors.HistoryTooShort: StatusCode.FAILED_PRECONDITION,
    errors.DataUnavailable: StatusCode.UNAVAILABLE,
    errors.StoreUnavailable: StatusCode.UNAVAILABLE,
    errors.StoreTimeout: StatusCode.UNAVAILABLE,
    errors.SecretsUnreadable: StatusCode.INTERNAL,
    errors.SecretReferenceBroken: StatusCode.INTERNAL,
    errors.TokenUnavailable: StatusCode.UNAVAILABLE,
    errors.LeaseLost: StatusCode.INTERNAL,
    errors.ClusterUnreachable: StatusCode.UNAVAILABLE,
    errors.SettingsInvalid: StatusCode.INTERNAL,
}
#: The text ends up in Kubernetes events, which are limited; characters.
_MAX_TEXT: Final = 900
_INTERNAL_ERROR: Final = "Internal error in the Lagscale scaler; see its logs."


def find_code(error: BaseException) -> StatusCode:
    """The status code of an error; INTERNAL for a defect."""
    return CODES.get(type(error), StatusCode.INTERNAL)


def render_status_text(error: BaseException) -> str:
    """The status text of an error; the text of a defect appears in the log alone."""
    return error.message[:_MAX_TEXT] if isinstance(error, errors.LagscaleError) else _INTERNAL_ERROR
