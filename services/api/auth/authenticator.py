"""Authentication: the bootstrap key, an API key of the registry, or a token of the OpenID Connect issuer."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, replace

from lagscale.domain.tenancy import is_name
from lagscale.errors import NotAllowed, NotAuthenticated
from lagscale.rate_limit import RateLimiter
from lagscale.store.registry import api_keys, tenants
from lagscale.store.registry.session import AccessScope, RegistryDatabase
from services.api.auth.issuer_keys import IssuerKeys
from services.api.auth.rate_limits import AuthRateLimiter
from services.api.auth.tokens import NOT_MAPPED, TokenVerifier, is_token
from services.api.settings import ApiSettings

_MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller.

    Attributes:
        tenant_id: its tenant; None for the platform.
        actor: its name in the audit.
        address: of the client, for the audit; None if it is unknown.
    """

    role: str
    tenant_id: int | None
    actor: str
    address: str | None = None

    @property
    def scope(self) -> AccessScope:
        """Which rows this caller may see, and what its transactions record."""
        return AccessScope(self.tenant_id, self.actor, self.address)


class Authenticator:
    """Authenticates callers."""

    def __init__(
        self,
        database: RegistryDatabase,
        admin_key: str | None,
        *,
        tokens: TokenVerifier | None = None,
        guard: AuthRateLimiter | None = None,
    ) -> None:
        """Keep the digest of the bootstrap key; None disables the bootstrap key, tokens, or rate limits."""
        self._database = database
        self._admin = None if admin_key is None else hashlib.sha256(admin_key.encode()).digest()
        self._tokens = tokens
        self._guard = AuthRateLimiter() if guard is None else guard

    async def close(self) -> None:
        """Close the connection to the issuer of tokens."""
        if self._tokens is not None:
            await self._tokens.close()

    async def identify(self, text: str | None, address: str | None = None) -> Principal:
        """The principal of a key or token. Nothing is cached, so a revoked key is refused from then on.

        Args:
            text: the key or token; None if none was sent.
            address: the client's address.

        Raises:
            NotAuthenticated: there is no key or token, or it is not valid.
            NotAllowed: the token is valid, but its claims map to no tenant and role.
            RateExceeded: too many requests of the key, or too many failed attempts from the address.
            StoreUnavailable, IssuerUnavailable: it cannot be looked up at present.
        """
        if text is None:
            self._guard.record_failure(None, address, "missing")
            raise NotAuthenticated
        # Digests have one length, so the comparison reveals nothing of the key, not even its length.
        digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
        self._guard.check_address(digest, address)
        try:
            principal = await self._find_principal(text, digest)
        except (NotAuthenticated, NotAllowed) as error:
            self._guard.record_failure(digest, address, str(error.facts.get("reason", "unknown_key")))
            raise
        self._guard.record_success(digest)
        return replace(principal, address=address)

    async def _find_principal(self, text: str, digest: bytes) -> Principal:
        if self._admin is not None and hmac.compare_digest(digest, self._admin):
            self._guard.count("bootstrap key")
            return Principal(api_keys.PLATFORM_ADMIN, None, "bootstrap key")
        if self._tokens is not None and not api_keys.is_key(text) and is_token(text):
            return await self._find_token_principal(self._tokens, text)
        if not api_keys.is_key(text):
            raise NotAuthenticated(reason="malformed")
        # By the whole key, so that only its holder can use up its rate; and before the database is asked.
        self._guard.count(digest.hex())
        # The tenant is the result of this query, so it has to see all tenants.
        async with self._database.platform("authentication") as session:
            row = await api_keys.identify(session, text)
        return Principal(row["role"], row["tenant_id"], f"key {row['prefix']} ({row['name']})")

    async def _find_token_principal(self, tokens: TokenVerifier, text: str) -> Principal:
        claims = await tokens.verify(text)
        identity = tokens.read_identity(claims)
        actor = f"oidc {identity.subject}"
        self._guard.count(actor)
        if identity.tenant is None:
            return Principal(identity.role, None, actor)
        tenant_id = None
        if is_name(identity.tenant):
            async with self._database.platform("authentication") as session:
                tenant_id = await tenants.find_tenant_id(session, identity.tenant)
        if tenant_id is None:
            raise NotAllowed(NOT_MAPPED, reason="token_not_mapped")
        return Principal(identity.role, tenant_id, actor)


def build_authenticator(settings: ApiSettings, database: RegistryDatabase, admin_key: str | None) -> Authenticator:
    """The authenticator of these settings; connects to nothing yet."""
    rules = settings.token_rules
    tokens = None if rules is None else TokenVerifier(rules, IssuerKeys(rules.issuer, settings.api_oidc_ca_file))
    key_rates = RateLimiter(settings.api_rate_limit, settings.api_rate_limit_burst) if settings.api_rate_limit else None
    failures = settings.api_auth_failures_per_minute
    failure_rates = RateLimiter(failures / _MINUTE, max(1.0, failures)) if failures else None
    return Authenticator(database, admin_key, tokens=tokens, guard=AuthRateLimiter(key_rates, failure_rates))
