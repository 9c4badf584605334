"""Whom a bearer token's tenant is: a name that the issuer vouches for -> the tenant's number."""

from __future__ import annotations

from sqlalchemy import select

from lagscale.store.registry.session import RegistrySession
from lagscale.store.registry.tables import tenant


async def tenant_id(session: RegistrySession, name: str) -> int | None:
    """The number of the tenant of this name, None if there is none.

    Args:
        session: a transaction of the platform: which tenant the caller is of, is what is asked here.
        name: the tenant's, or any text.
    """
    row = await session.fetch_optional(select(tenant.c.id).where(tenant.c.name == name))
    return None if row is None else int(row["id"])
