"""What each kind of problem is: its type, status, the field it blames where the error names none, and the way out.

`docs/errors.md` is rendered from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lagscale import errors
from lagscale.errors import LagscaleError

TYPE_PREFIX: Final = "urn:lagscale:problem:"
#: So much a body may have, bytes; as many changes as one request may hold fit in.
MAX_BODY_BYTES: Final = 8 * 1024 * 1024
#: Blamed where no field of a body, parameter or header is.
PATH, METHOD, BODY = "path", "method", "body"
_AUTHORIZATION = "Authorization"


@dataclass(frozen=True, slots=True)
class ProblemType:
    """A kind of problem.

    Attributes:
        status: of HTTP.
        field: what of the request is at fault, where the error itself does not say; None: nothing of it is.
        remediation: what to do.
    """

    status: int
    field: str | None
    remediation: str


@dataclass(frozen=True, slots=True)
class FrameworkProblemType(ProblemType):
    """A kind that is no error of the family: the request does not get so far. `name` ends its type."""

    name: str
    title: str


_CONTACT_OPERATOR = "Tell whoever runs Lagscale: the API's log has it. The request is not at fault."
_RETRY_LATER = "Repeat the request after `Retry-After` seconds; the request is not at fault."
#: Every class of the family has its kind; a test walks all subclasses and fails on one that is not here.
PROBLEM_TYPES: Final[Mapping[type[LagscaleError], ProblemType]] = {
    LagscaleError: ProblemType(500, None, _CONTACT_OPERATOR),
    errors.InvalidInput: ProblemType(422, BODY, "Correct each field that `errors` names, then send the request again."),
    errors.NotFound: ProblemType(
        404, PATH, "Check each name of the path, list the objects around it, and check whose key is sent."
    ),
    errors.Conflict: ProblemType(409, PATH, "Take away what `detail` names, or take another name; then send it again."),
    errors.PreconditionFailed: ProblemType(
        412, "If-Match", "Read the object, look at what has changed, and send the change with its new `ETag`."
    ),
    errors.NotAuthenticated: ProblemType(
        401,
        _AUTHORIZATION,
        "Send a valid key as `Authorization: Bearer <key>`; an administrator of the tenant makes one.",
    ),
    errors.NotAllowed: ProblemType(
        403,
        _AUTHORIZATION,
        "Send the key of a role that may do it, or ask an administrator of the tenant or the platform.",
    ),
    errors.QuotaExceeded: ProblemType(
        429, None, "Free some of what is used up, or wait as long as `Retry-After` says, or ask for a higher quota."
    ),
    errors.RateExceeded: ProblemType(
        429, _AUTHORIZATION, "Wait as long as `Retry-After` says, then go on more slowly."
    ),
    errors.IssuerUnavailable: ProblemType(
        503, None, "Repeat the request after `Retry-After` seconds, or send an API key."
    ),
    errors.Unknown: ProblemType(503, None, _RETRY_LATER),
    errors.HistoryTooShort: ProblemType(503, None, _RETRY_LATER),
    errors.DataUnavailable: ProblemType(503, None, _RETRY_LATER),
    errors.StoreUnavailable: ProblemType(503, None, _RETRY_LATER),
    errors.StoreTimeout: ProblemType(503, None, _RETRY_LATER),
    errors.SecretsUnreadable: ProblemType(
        500, None, "Tell whoever runs Lagscale to set LAGSCALE_SECRET_KEYS; or give the cluster its secrets anew."
    ),
    errors.SecretReferenceBroken: ProblemType(
        422, "secrets", "Mount the file or set the variable that the reference names, or give the secret itself."
    ),
    errors.TokenUnavailable: ProblemType(502, None, "Run the cluster's preflight: it tells why there is no token."),
    errors.LeaseLost: ProblemType(503, None, _RETRY_LATER),
    errors.ClusterUnreachable: ProblemType(502, None, "Run the cluster's preflight: it tells what keeps Lagscale out."),
    errors.SettingsInvalid: ProblemType(500, None, _CONTACT_OPERATOR),
}
METHOD_NOT_ALLOWED = FrameworkProblemType(
    405, METHOD, "Send one of the methods that the header `Allow` names.",
    "method-not-allowed", "This path does not know that method.",
)  # fmt: skip
CONTENT_TOO_LARGE = FrameworkProblemType(
    413, BODY, f"Send at most {MAX_BODY_BYTES // 1024**2} MiB at a time: divide the changes over several requests.",
    "content-too-large", "The body is too large.",
)  # fmt: skip
UNSUPPORTED_MEDIA_TYPE = FrameworkProblemType(
    415, "Content-Type", "Send the body as JSON in UTF-8, with `Content-Type: application/json`.",
    "unsupported-media-type", "The body has a type that is not read here.",
)  # fmt: skip
INTERNAL_ERROR = FrameworkProblemType(
    500, None, "Tell whoever runs Lagscale: the API's log has the defect. Nothing was changed.",
    "internal-error", "Something went wrong in Lagscale.",
)  # fmt: skip
FRAMEWORK_PROBLEM_TYPES: Final = (METHOD_NOT_ALLOWED, CONTENT_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, INTERNAL_ERROR)


def find_problem_type(error: LagscaleError) -> ProblemType:
    """The kind of an error: its class's, else the nearest ancestor's."""
    return next(PROBLEM_TYPES[error_class] for error_class in type(error).__mro__ if error_class in PROBLEM_TYPES)


def build_type_uri(error_class: type[LagscaleError]) -> str:
    """The type of a class of the family, as a URI."""
    name = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in error_class.__name__).lstrip("-")
    return TYPE_PREFIX + name
