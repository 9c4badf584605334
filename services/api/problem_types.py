"""Problem types: type, title, status, the field at fault where the error names none, and the remediation.

`docs/errors.md` is rendered from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lagscale import errors
from lagscale.errors import LagscaleError

TYPE_PREFIX: Final = "urn:lagscale:problem:"
#: Maximum size of a body, bytes; the maximum number of changes of one request fits in.
MAX_BODY_BYTES: Final = 8 * 1024 * 1024
#: At fault where no field of a body, parameter or header is.
PATH, METHOD, BODY = "path", "method", "body"
_AUTHORIZATION = "Authorization"


@dataclass(frozen=True, slots=True)
class ProblemType:
    """A type of problem.

    Attributes:
        name: the last part of its URI.
        status: of HTTP.
        title: the same for every problem of the type.
        field: the part of the request at fault, if the error itself names none; None if the request is not at fault.
        remediation: what to do.
    """

    name: str
    status: int
    title: str
    field: str | None
    remediation: str

    @property
    def uri(self) -> str:
        """The type as a URI."""
        return TYPE_PREFIX + self.name


_RETRY_LATER = "Retry after `Retry-After` seconds; the request is not at fault."
INTERNAL_ERROR = ProblemType(
    "internal-error",
    500,
    "Internal server error.",
    None,
    "Internal error; contact the operator, the API's logs have it.",
)
METHOD_NOT_ALLOWED = ProblemType(
    "method-not-allowed", 405, "Method not allowed.", METHOD, "Use one of the methods in the header `Allow`."
)
CONTENT_TOO_LARGE = ProblemType(
    "content-too-large",
    413,
    "Request body too large.",
    BODY,
    f"Send at most {MAX_BODY_BYTES // 1024**2} MiB: split the changes into several requests.",
)
UNSUPPORTED_MEDIA_TYPE = ProblemType(
    "unsupported-media-type",
    415,
    "Unsupported content type.",
    "Content-Type",
    "Send the body as JSON in UTF-8, with `Content-Type: application/json`.",
)
#: Raised by the framework, before an error of the family can be.
FRAMEWORK_PROBLEM_TYPES: Final = (METHOD_NOT_ALLOWED, CONTENT_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, INTERNAL_ERROR)
#: Every class of the family has its type; a test walks all subclasses and fails on one that is missing.
PROBLEM_TYPES: Final[Mapping[type[LagscaleError], ProblemType]] = {
    LagscaleError: INTERNAL_ERROR,
    errors.InvalidInput: ProblemType(
        "invalid-input", 422, "Invalid request.", BODY, "Correct each field in `errors`, then retry."
    ),
    errors.NotFound: ProblemType(
        "not-found",
        404,
        "Object not found.",
        PATH,
        "Check the names in the path, and that the key is of the right tenant.",
    ),
    errors.Conflict: ProblemType(
        "conflict",
        409,
        "Conflict with the current state of the object.",
        PATH,
        "Resolve what `detail` names, or choose another name; then retry.",
    ),
    errors.PreflightRunning: ProblemType(
        "preflight-running",
        409,
        "A preflight of this cluster is already running.",
        PATH,
        "Retry in a few seconds.",
    ),
    errors.PreconditionFailed: ProblemType(
        "precondition-failed",
        412,
        "Object version does not match If-Match.",
        "If-Match",
        "Read the object, review what has changed, and retry with its new `ETag`.",
    ),
    errors.NotAuthenticated: ProblemType(
        "not-authenticated",
        401,
        "Missing or invalid API key or bearer token.",
        _AUTHORIZATION,
        "Send a valid key as `Authorization: Bearer <key>`; an administrator of the tenant can create one.",
    ),
    errors.NotAllowed: ProblemType(
        "forbidden",
        403,
        "Permission denied for this key.",
        _AUTHORIZATION,
        "Use a key with the required role, or ask an administrator of the tenant or the platform.",
    ),
    errors.QuotaExceeded: ProblemType(
        "quota-exceeded",
        429,
        "Tenant quota exceeded.",
        None,
        "Free some of the quota, retry after `Retry-After` seconds if it is given, or ask for a higher quota.",
    ),
    errors.RateExceeded: ProblemType(
        "rate-limit-exceeded",
        429,
        "Rate limit exceeded.",
        _AUTHORIZATION,
        "Retry after `Retry-After` seconds, and send fewer requests.",
    ),
    errors.IssuerUnavailable: ProblemType(
        "token-issuer-unavailable",
        503,
        "OpenID Connect issuer unavailable.",
        None,
        "Retry after `Retry-After` seconds, or use an API key.",
    ),
    errors.Unknown: ProblemType(
        "lag-unknown", 503, "Lag is unknown and no last known answer exists.", None, _RETRY_LATER
    ),
    errors.HistoryTooShort: ProblemType(
        "history-too-short", 503, "Not enough samples to evaluate the policy.", None, _RETRY_LATER
    ),
    errors.DataUnavailable: ProblemType(
        "data-unavailable", 503, "Samples are stale or incomplete.", None, _RETRY_LATER
    ),
    errors.StoreUnavailable: ProblemType("store-unavailable", 503, "Database unavailable.", None, _RETRY_LATER),
    errors.StoreTimeout: ProblemType("store-timeout", 503, "Database timeout.", None, _RETRY_LATER),
    errors.SecretsUnreadable: ProblemType(
        "secrets-unreadable",
        500,
        "Stored secret cannot be decrypted.",
        None,
        "Ask the operator to set LAGSCALE_SECRET_KEYS to the keys that encrypted it, or set the cluster's secrets again.",
    ),
    errors.SecretReferenceBroken: ProblemType(
        "secret-reference-invalid",
        422,
        "Secret reference cannot be resolved.",
        "secrets",
        "Mount the file or set the variable that the reference names, or set the secret itself.",
    ),
    errors.TokenUnavailable: ProblemType(
        "kafka-token-unavailable",
        502,
        "No access token for the Kafka cluster.",
        None,
        "Run a preflight of the cluster; it shows the cause.",
    ),
    errors.LeaseLost: ProblemType("lease-lost", 503, "Leadership lost to another scraper.", None, _RETRY_LATER),
    errors.ClusterUnreachable: ProblemType(
        "cluster-unreachable",
        502,
        "Kafka cluster unreachable.",
        None,
        "Run a preflight of the cluster; it shows the cause.",
    ),
    errors.SettingsInvalid: ProblemType("settings-invalid", 500, "Invalid settings.", None, INTERNAL_ERROR.remediation),
}


def find_problem_type(error: LagscaleError) -> ProblemType:
    """The type of an error: that of its class, else of the nearest ancestor."""
    return next(PROBLEM_TYPES[error_class] for error_class in type(error).__mro__ if error_class in PROBLEM_TYPES)
