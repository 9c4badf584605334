"""Exit codes: the family of errors by table, so that scripts can distinguish failures."""

from __future__ import annotations

from collections.abc import Mapping

from lagscale import errors
from lagscale.errors import LagscaleError


class DifferencesFound(LagscaleError):
    """The files differ from the registered objects."""


class PartiallyApplied(LagscaleError):
    """Only a part was applied; fix the errors and repeat: applied objects stay unchanged."""


#: Every class of the family has its code; a test walks all subclasses and fails on one that is not here.
EXIT_CODES: Mapping[type[LagscaleError], int] = {
    LagscaleError: 1,
    errors.InvalidInput: 2,
    errors.SettingsInvalid: 2,
    errors.NotFound: 3,
    errors.NotAuthenticated: 4,
    errors.NotAllowed: 4,
    errors.Conflict: 5,
    errors.PreflightRunning: 5,
    errors.PreconditionFailed: 5,
    errors.QuotaExceeded: 6,
    errors.RateExceeded: 6,
    errors.IssuerUnavailable: 8,
    errors.Unknown: 7,
    errors.HistoryTooShort: 7,
    errors.DataUnavailable: 7,
    errors.StoreUnavailable: 8,
    errors.StoreTimeout: 8,
    errors.ClusterUnreachable: 8,
    errors.SecretsUnreadable: 9,
    errors.SecretReferenceBroken: 9,
    errors.TokenUnavailable: 8,
    errors.LeaseLost: 1,
}
#: Exit codes of the command's own errors.
COMMAND_EXIT_CODES: Mapping[type[LagscaleError], int] = {DifferencesFound: 1, PartiallyApplied: 10}


def find_exit_code(error: LagscaleError) -> int:
    """The exit code of an error: its class's, else the nearest ancestor's."""
    codes = {**EXIT_CODES, **COMMAND_EXIT_CODES}
    return next(codes[kind] for kind in type(error).__mro__ if kind in codes)
