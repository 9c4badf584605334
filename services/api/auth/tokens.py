"""Bearer tokens of an OpenID Connect issuer: verification, and the tenant and role that the claims map to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt

from lagscale.errors import NotAllowed, NotAuthenticated
from lagscale.store.registry.api_keys import PLATFORM_ADMIN, ROLES
from services.api.auth.issuer_keys import IssuerKey, IssuerKeys

#: A longer text is refused without parsing.
_MAX_TOKEN_LENGTH = 16_384
_MAX_SUBJECT_LENGTH = 200
#: Signatures that only the holder of a private key can make.
ASYMMETRIC = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip
#: One message for every cause: a claim must not reveal which tenants exist.
NOT_MAPPED = "The token is valid, but its claims map to no tenant and role; ask the platform team to map them."
#: Exception of the library -> reason in the metrics. The nearest class decides.
_REASONS: Mapping[type[Exception], str] = {
    jwt.ExpiredSignatureError: "token_expired",
    jwt.ImmatureSignatureError: "token_not_yet_valid",
    jwt.InvalidAudienceError: "token_audience",
    jwt.InvalidIssuerError: "token_issuer",
    jwt.InvalidSignatureError: "token_signature",
    jwt.InvalidAlgorithmError: "token_algorithm",
    jwt.MissingRequiredClaimError: "token_claims",
    Exception: "token_malformed",
}


@dataclass(frozen=True, slots=True)
class TokenRules:
    """Requirements of a token, and how its claims are read.

    Attributes:
        audiences: the token's audience must be one of them.
        leeway_seconds: allowed clock skew of the issuer.
        tenant_claim, role_claim: a claim's name, or a dotted path into nested claims.
        tenants, roles: value of the claim -> tenant or role; empty where the claim holds ours.
    """

    issuer: str
    audiences: tuple[str, ...]
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    leeway_seconds: float = 30.0
    tenant_claim: str = "tenant"
    role_claim: str = "role"
    tenants: Mapping[str, str] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TokenIdentity:
    """Identity of a valid token; `tenant` is None for the platform's administrators."""

    subject: str
    role: str
    tenant: str | None


def is_token(text: str) -> bool:
    """Whether the text has the form of a token: three parts separated by dots."""
    return text.count(".") == 2


class TokenVerifier:
    """Verifies tokens."""

    def __init__(self, rules: TokenRules, keys: IssuerKeys) -> None:
        self._rules = rules
        self._keys = keys

    async def close(self) -> None:
        """Close the connection to the issuer."""
        await self._keys.close()

    async def verify(self, text: str) -> Mapping[str, Any]:
        """The claims of a valid token.

        Raises:
            NotAuthenticated: it is not valid; the fact `reason` is the cause, for the metrics.
            IssuerUnavailable: its key is not cached, and the issuer does not answer.
        """
        if len(text) > _MAX_TOKEN_LENGTH:
            raise NotAuthenticated(reason="token_malformed")
        with _translate_errors():
            kid, algorithm = self._read_header(text)
        key = await self._keys.find(kid)
        if key is None:
            raise NotAuthenticated(reason="token_unknown_key")
        with _translate_errors():
            return self._verify_claims(text, key, algorithm)

    def _read_header(self, text: str) -> tuple[str | None, str]:
        """Key id and algorithm. A token of another issuer or algorithm is refused before its key is fetched."""
        unchecked = jwt.decode_complete(text, options={"verify_signature": False})
        header, claims = unchecked["header"], unchecked["payload"]
        if header.get("alg") not in self._rules.algorithms:
            raise jwt.InvalidAlgorithmError
        if claims.get("iss") != self._rules.issuer:
            raise jwt.InvalidIssuerError
        kid = header.get("kid")
        return kid if isinstance(kid, str) else None, header["alg"]

    def _verify_claims(self, text: str, key: IssuerKey, algorithm: str) -> Mapping[str, Any]:
        if key.get("alg", algorithm) != algorithm:
            # A key is for one algorithm, which the issuer decides and not the token.
            raise jwt.InvalidAlgorithmError
        claims: Mapping[str, Any] = jwt.decode(
            text,
            jwt.PyJWK(dict(key), algorithm),
            algorithms=list(self._rules.algorithms),
            audience=list(self._rules.audiences),
            issuer=self._rules.issuer,
            leeway=self._rules.leeway_seconds,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )
        return claims

    def read_identity(self, claims: Mapping[str, Any]) -> TokenIdentity:
        """The identity of the claims: the highest of the roles, and exactly one tenant.

        Raises:
            NotAllowed: no role, no tenant, or several tenants; the message does not say which.
        """
        rules = self._rules
        roles = {_map_value(rules.roles, value) for value in _read_claim(claims, rules.role_claim)}
        role = next((candidate for candidate in ROLES if candidate in roles), None)
        subject = "".join(letter if letter.isprintable() else "?" for letter in str(claims["sub"]))[
            :_MAX_SUBJECT_LENGTH
        ]
        if role == PLATFORM_ADMIN:
            return TokenIdentity(subject, role, None)
        tenants = {_map_value(rules.tenants, value) for value in _read_claim(claims, rules.tenant_claim)} - {None}
        tenant = tenants.pop() if len(tenants) == 1 else None
        if role is None or tenant is None:
            raise NotAllowed(NOT_MAPPED, reason="token_not_mapped")
        return TokenIdentity(subject, role, tenant)


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as wrong:
        reason = next(_REASONS[error_class] for error_class in type(wrong).__mro__ if error_class in _REASONS)
        raise NotAuthenticated(reason=reason) from wrong


def _map_value(mapping: Mapping[str, str], value: str) -> str | None:
    return mapping.get(value) if mapping else value


def _read_claim(claims: Mapping[str, Any], path: str) -> Sequence[str]:
    """Strings of a claim: the claim of this very name, also with dots in it, else a path into nested claims."""
    found: Any = claims
    if path in claims:
        found = claims[path]
    else:
        for name in path.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
    return [value for value in (found if isinstance(found, list) else [found]) if isinstance(value, str)]
