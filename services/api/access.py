"""Who calls, and what that key may do: the bootstrap key of the settings, else a key of the registry."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from lagscale.errors import NotAllowed, NotAuthenticated
from lagscale.store.registry import keys
from lagscale.store.registry.database import RegistryDatabase, Scope
from services.api.tenant_rates import TenantRates

_BEARER = HTTPBearer(
    auto_error=False, description="An API key, as in `Authorization: Bearer lsk_...`, or the bootstrap admin key."
)
#: A role may do what the roles after it may.
_ORDER = (keys.PLATFORM_ADMIN, keys.TENANT_ADMIN, keys.TENANT_VIEWER)


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

    def __init__(self, database: RegistryDatabase, admin_key: str | None) -> None:
        """Keep the digest of the bootstrap key; None switches it off."""
        self._database = database
        self._admin = None if admin_key is None else hashlib.sha256(admin_key.encode()).digest()

    async def identify(self, text: str | None) -> Principal:
        """The principal of a key.

        Raises:
            NotAuthenticated: there is no key, or none that is valid.
            StoreUnavailable: keys cannot be looked up now.
        """
        if text is None:
            raise NotAuthenticated
        # Digests have one length, so the comparison tells nothing of the key, not even that.
        given = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
        if self._admin is not None and hmac.compare_digest(given, self._admin):
            return Principal(keys.PLATFORM_ADMIN, None, "bootstrap key")
        if not keys.is_key(text):
            raise NotAuthenticated
        # Whose key it is, is what is asked here: so this one look is across all tenants.
        async with self._database.platform("authentication") as work:
            row = await keys.identify(work, text)
        return Principal(row["role"], row["tenant_id"], f"key {row['prefix']} ({row['name']})")


async def _caller(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]
) -> Principal:
    access: Access = request.app.state.access
    caller = await access.identify(None if credentials is None else credentials.credentials)
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


Viewer = Annotated[Principal, Depends(_at_least(keys.TENANT_VIEWER))]
TenantAdmin = Annotated[Principal, Depends(_at_least(keys.TENANT_ADMIN))]
PlatformAdmin = Annotated[Principal, Depends(_at_least(keys.PLATFORM_ADMIN))]
