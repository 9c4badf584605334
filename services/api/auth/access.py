"""Who calls, and what that caller may do: the bootstrap key, a key of the registry, or a token of the issuer."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from lagscale.domain.tenancy import is_name
from lagscale.errors import NotAllowed, NotAuthenticated
from lagscale.store.registry import api_keys, identities
from lagscale.store.registry.origin import origin
from lagscale.store.registry.session import RegistryDatabase, Scope
from services.api.auth.id_tokens import NOT_MAPPED, Tokens, is_token
from services.api.auth.limits import Guard
from services.api.auth.tenant_rates import TenantRates

_BEARER = HTTPBearer(
    auto_error=False,
    description="An API key, as in `Authorization: Bearer lsk_...`; the bootstrap admin key; or a token of the issuer.",
)
#: A role may do what the roles after it may.
_ORDER = (api_keys.PLATFORM_ADMIN, api_keys.TENANT_ADMIN, api_keys.TENANT_VIEWER)


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller: a role, the tenant it is for (None: the platform), and its name in the audit."""

    role: str
    tenant_id: int | None
    actor: str

    @property
    def scope(self) -> Scope:
        """Whose rows this caller may see."""
        return Scope(self.tenant_id, self.actor)


class Access:
    """Finds out who calls."""

    def __init__(
        self,
        database: RegistryDatabase,
        admin_key: str | None,
        *,
        tokens: Tokens | None = None,
        guard: Guard | None = None,
    ) -> None:
        """Keep the digest of the bootstrap key; None switches it off, and so do the others."""
        self._database = database
        self._admin = None if admin_key is None else hashlib.sha256(admin_key.encode()).digest()
        self._tokens = tokens
        self._guard = Guard() if guard is None else guard

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
            self._guard.failed(None, address, "missing")
            raise NotAuthenticated
        # Digests have one length, so the comparison tells nothing of the key, not even that.
        given = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
        self._guard.admit(given, address)
        try:
            principal = await self._found(text, given)
        except (NotAuthenticated, NotAllowed) as refused:
            self._guard.failed(given, address, str(refused.facts.get("reason", "unknown_key")))
            raise
        self._guard.proved(given)
        return principal

    async def _found(self, text: str, given: bytes) -> Principal:
        if self._admin is not None and hmac.compare_digest(given, self._admin):
            self._guard.count("bootstrap key")
            return Principal(api_keys.PLATFORM_ADMIN, None, "bootstrap key")
        if self._tokens is not None and not api_keys.is_key(text) and is_token(text):
            return await self._of_token(self._tokens, text)
        if not api_keys.is_key(text):
            raise NotAuthenticated(reason="malformed")
        # By the whole key, so that only its holder can use up its rate; and before the store has any work with it.
        self._guard.count(given.hex())
        # Whose key it is, is what is asked here: so this one look is across all tenants.
        async with self._database.platform("authentication") as work:
            row = await api_keys.identify(work, text)
        return Principal(row["role"], row["tenant_id"], f"key {row['prefix']} ({row['name']})")

    async def _of_token(self, tokens: Tokens, text: str) -> Principal:
        claims = await tokens.verify(text)
        bearer = tokens.bearer(claims)
        actor = f"oidc {bearer.subject}"
        self._guard.count(actor)
        if bearer.tenant is None:
            return Principal(bearer.role, None, actor)
        found = None
        if is_name(bearer.tenant):
            async with self._database.platform("authentication") as work:
                found = await identities.tenant_id(work, bearer.tenant)
        if found is None:
            raise NotAllowed(NOT_MAPPED, reason="token_not_mapped")
        return Principal(bearer.role, found, actor)


async def _caller(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]
) -> Principal:
    access: Access = request.app.state.access
    caller = await access.identify(None if credentials is None else credentials.credentials, origin())
    rates: TenantRates = request.app.state.rates
    rates.count(caller.tenant_id)
    return caller


def _at_least(role: str) -> Callable[[Principal], Awaitable[Principal]]:
    allowed = _ORDER[: _ORDER.index(role) + 1]

    async def check(caller: Annotated[Principal, Depends(_caller)]) -> Principal:
        # Before any object is looked for, so that the answer says nothing of objects.
        if caller.role not in allowed:
            raise NotAllowed(f"This key has the role {caller.role}; that needs the role {role}.")
        return caller

    return check


Viewer = Annotated[Principal, Depends(_at_least(api_keys.TENANT_VIEWER))]
TenantAdmin = Annotated[Principal, Depends(_at_least(api_keys.TENANT_ADMIN))]
PlatformAdmin = Annotated[Principal, Depends(_at_least(api_keys.PLATFORM_ADMIN))]
