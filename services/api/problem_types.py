"""What each kind of problem is: its type, status, the field it blames where the error names none, and the way out.

`docs/errors.md` is rendered from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lagscale import errors
from lagscale.errors import LagscaleError

TYPE: Final = "urn:lagscale:problem:"
#: So much a body may have, bytes; as many changes as one request may hold fit in.
MOST_BODY: Final = 8 * 1024 * 1024
#: Blamed where no field of a body, parameter or header is.
PATH, METHOD, BODY = "path", "method", "body"
_KEY = "Authorization"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of problem.

    Attributes:
        status: of HTTP.
        field: what of the request is at fault, where the error itself does not say; None: nothing of it is.
        way_out: what to do.
    """

    status: int
    field: str | None
    way_out: str


@dataclass(frozen=True, slots=True)
class Framework(Kind):
    """A kind that is no error of the family: the request does not get so far. `name` ends its type."""

    name: str
    title: str


_OPERATOR = "Tell whoever runs Lagscale: the API's log has it. The request is not at fault."
_LATER = "Repeat the request after `Retry-After` seconds; the request is not at fault."
#: Every class of the family has its kind; a test walks all subclasses and fails on one that is not here.
KINDS: Final[Mapping[type[LagscaleError], Kind]] = {
    LagscaleError: Kind(500, None, _OPERATOR),
    errors.InvalidInput: Kind(422, BODY, "Correct each field that `errors` names, then send the request again."),
    errors.NotFound: Kind(
        404, PATH, "Check each name of the path, list the objects around it, and check whose key is sent."
    ),
    errors.Conflict: Kind(409, PATH, "Take away what `detail` names, or take another name; then send it again."),
    errors.PreconditionFailed: Kind(
        412, "If-Match", "Read the object, look at what has changed, and send the change with its new `ETag`."
    ),
    errors.NotAuthenticated: Kind(
        401, _KEY, "Send a valid key as `Authorization: Bearer <key>`; an administrator of the tenant makes one."
    ),
    errors.NotAllowed: Kind(
        403, _KEY, "Send the key of a role that may do it, or ask an administrator of the tenant or the platform."
    ),
    errors.QuotaExceeded: Kind(
        429, None, "Free some of what is used up, or wait as long as `Retry-After` says, or ask for a higher quota."
    ),
    errors.RateExceeded: Kind(429, _KEY, "Wait as long as `Retry-After` says, then go on more slowly."),
    errors.IssuerUnavailable: Kind(503, None, "Repeat the request after `Retry-After` seconds, or send an API key."),
    errors.Unknown: Kind(503, None, _LATER),
    errors.HistoryTooShort: Kind(503, None, _LATER),
    errors.DataUnavailable: Kind(503, None, _LATER),
    errors.StoreUnavailable: Kind(503, None, _LATER),
    errors.StoreTimeout: Kind(503, None, _LATER),
    errors.SecretsUnreadable: Kind(
        500, None, "Tell whoever runs Lagscale to set LAGSCALE_SECRET_KEYS; or give the cluster its secrets anew."
    ),
    errors.SecretReferenceBroken: Kind(
        422, "secrets", "Mount the file or set the variable that the reference names, or give the secret itself."
    ),
    errors.TokenUnavailable: Kind(502, None, "Run the cluster's preflight: it tells why there is no token."),
    errors.LeaseLost: Kind(503, None, _LATER),
    errors.ClusterUnreachable: Kind(502, None, "Run the cluster's preflight: it tells what keeps Lagscale out."),
    errors.SettingsInvalid: Kind(500, None, _OPERATOR),
}
METHOD_NOT_ALLOWED = Framework(
    405, METHOD, "Send one of the methods that the header `Allow` names.",
    "method-not-allowed", "This path does not know that method.",
)  # fmt: skip
CONTENT_TOO_LARGE = Framework(
    413, BODY, f"Send at most {MOST_BODY // 1024**2} MiB at a time: divide the changes over several requests.",
    "content-too-large", "The body is too large.",
)  # fmt: skip
UNSUPPORTED_MEDIA_TYPE = Framework(
    415, "Content-Type", "Send the body as JSON in UTF-8, with `Content-Type: application/json`.",
    "unsupported-media-type", "The body has a type that is not read here.",
)  # fmt: skip
INTERNAL_ERROR = Framework(
    500, None, "Tell whoever runs Lagscale: the API's log has the defect. Nothing was changed.",
    "internal-error", "Something went wrong in Lagscale.",
)  # fmt: skip
FRAMEWORK: Final = (METHOD_NOT_ALLOWED, CONTENT_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, INTERNAL_ERROR)


def kind_of(error: LagscaleError) -> Kind:
    """The kind of an error: its class's, else the nearest ancestor's."""
    return next(KINDS[kind] for kind in type(error).__mro__ if kind in KINDS)


def type_of(kind: type[LagscaleError]) -> str:
    """The type of a class of the family, as a URI."""
    name = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in kind.__name__).lstrip("-")
    return TYPE + name
