"""Who calls, and what that caller may do: the bootstrap key, a key of the registry, or a token of the issuer."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from lagscale.domain.tenancy import is_name
from lagscale.errors import NotAllowed, NotAuthenticated
from lagscale.store.registry import api_keys, tenants
from lagscale.store.registry.session import AccessScope, RegistryDatabase
from services.api.auth.rate_limits import AuthRateLimiter
from services.api.auth.tenant_rates import TenantRateLimiter
from services.api.auth.tokens import NOT_MAPPED, TokenVerifier, is_token
from services.api.client_address import find_client_address

_BEARER = HTTPBearer(
    auto_error=False,
    description="An API key, as in `Authorization: Bearer lsk_...`; the bootstrap admin key; or a token of the issuer.",
)
#: A role may do what the roles after it may.
_ROLES_BY_POWER = (api_keys.PLATFORM_ADMIN, api_keys.TENANT_ADMIN, api_keys.TENANT_VIEWER)


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller of a request.

    Attributes:
        tenant_id: the tenant that the role is for; None for the platform.
        actor: the caller's name in the audit.
        address: the client's address; None where it is unknown.
        dry_run: whether the request asks only what its change would come to.
    """

    role: str
    tenant_id: int | None
    actor: str
    address: str | None = None
    dry_run: bool = False

    @property
    def scope(self) -> AccessScope:
        """Which rows this caller may see, and what its transactions record."""
        return AccessScope(self.tenant_id, self.actor, self.address, self.dry_run)


class Authenticator:
    """Finds out who calls."""

    def __init__(
        self,
        database: RegistryDatabase,
        admin_key: str | None,
        *,
        tokens: TokenVerifier | None = None,
        guard: AuthRateLimiter | None = None,
    ) -> None:
        """Keep the digest of the bootstrap key; None switches it off, and so do the others."""
        self._database = database
        self._admin = None if admin_key is None else hashlib.sha256(admin_key.encode()).digest()
        self._tokens = tokens
        self._guard = AuthRateLimiter() if guard is None else guard

    async def close(self) -> None:
        """Let go of the tokens' issuer."""
        if self._tokens is not None:
            await self._tokens.close()

    async def identify(self, text: str | None, address: str | None = None) -> Principal:
        """The principal of a key or token. Each is looked up anew: what is revoked is refused from then on.

        Args:
            text: what was sent, None if nothing was.
            address: the client's.

        Raises:
            NotAuthenticated: there is no key or token, or none that is valid.
            NotAllowed: the token is valid and stands for nobody here.
            RateExceeded: it asks too often, or too many attempts from there have failed.
            StoreUnavailable, IssuerUnavailable: it cannot be looked up now.
        """
        if text is None:
            self._guard.record_failure(None, address, "missing")
            raise NotAuthenticated
        # Digests have one length, so the comparison tells nothing of the key, not even that.
        digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
        self._guard.check_address(digest, address)
        try:
            principal = await self._find_principal(text, digest)
        except (NotAuthenticated, NotAllowed) as error:
            self._guard.record_failure(digest, address, str(error.facts.get("reason", "unknown_key")))
            raise
        self._guard.record_success(digest)
        return principal

    async def _find_principal(self, text: str, digest: bytes) -> Principal:
        if self._admin is not None and hmac.compare_digest(digest, self._admin):
            self._guard.count("bootstrap key")
            return Principal(api_keys.PLATFORM_ADMIN, None, "bootstrap key")
        if self._tokens is not None and not api_keys.is_key(text) and is_token(text):
            return await self._find_token_principal(self._tokens, text)
        if not api_keys.is_key(text):
            raise NotAuthenticated(reason="malformed")
        # By the whole key, so that only its holder can use up its rate; and before the store has any work with it.
        self._guard.count(digest.hex())
        # Whose key it is, is what is asked here: so this one look is across all tenants.
        async with self._database.platform("authentication") as session:
            row = await api_keys.identify(session, text)
        return Principal(row["role"], row["tenant_id"], f"key {row['prefix']} ({row['name']})")

    async def _find_token_principal(self, tokens: TokenVerifier, text: str) -> Principal:
        claims = await tokens.verify(text)
        bearer = tokens.bearer(claims)
        actor = f"oidc {bearer.subject}"
        self._guard.count(actor)
        if bearer.tenant is None:
            return Principal(bearer.role, None, actor)
        found = None
        if is_name(bearer.tenant):
            async with self._database.platform("authentication") as session:
                found = await tenants.find_tenant_id(session, bearer.tenant)
        if found is None:
            raise NotAllowed(NOT_MAPPED, reason="token_not_mapped")
        return Principal(bearer.role, found, actor)


async def _authenticate_caller(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]
) -> Principal:
    access: Authenticator = request.app.state.access
    address = find_client_address(request.scope)
    caller = await access.identify(None if credentials is None else credentials.credentials, address)
    rates: TenantRateLimiter = request.app.state.rates
    rates.count(caller.tenant_id)
    return replace(caller, address=address)


def _require_role(role: str) -> Callable[..., Awaitable[Principal]]:
    allowed = _ROLES_BY_POWER[: _ROLES_BY_POWER.index(role) + 1]

    async def check_role(request: Request, caller: Annotated[Principal, Depends(_authenticate_caller)]) -> Principal:
        # Before any object is looked for, so that the answer says nothing of objects.
        if caller.role not in allowed:
            raise NotAllowed(f"This key has the role {caller.role}; that needs the role {role}.")
        # Dependencies of the route itself are solved first; `services.api.dry_run` is one.
        return replace(caller, dry_run=getattr(request.state, "dry_run", False))

    return check_role


Viewer = Annotated[Principal, Depends(_require_role(api_keys.TENANT_VIEWER))]
TenantAdmin = Annotated[Principal, Depends(_require_role(api_keys.TENANT_ADMIN))]
PlatformAdmin = Annotated[Principal, Depends(_require_role(api_keys.PLATFORM_ADMIN))]
