"""API keys: `lsk_<prefix>_<secret>`, of which only the SHA-256 digest is kept. 256 random bits need no salt."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import and_, func, insert, or_, select, update

from lagscale.errors import NotAuthenticated
from lagscale.store.registry import audit
from lagscale.store.registry.changes import present
from lagscale.store.registry.database import Row, TenantWork, Work
from lagscale.store.registry.pages import Page, Wanted, page
from lagscale.store.registry.tables import api_key

PLATFORM_ADMIN = "platform-admin"
TENANT_ADMIN = "tenant-admin"
TENANT_VIEWER = "tenant-viewer"
ROLES = (PLATFORM_ADMIN, TENANT_ADMIN, TENANT_VIEWER)

_MARK = "lsk"
#: `last_used_at` is written no more often, so that reading does not become writing.
_LAST_USE_STEP = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key as it is shown, once, to the one who made it."""

    text: str
    row: Row


def new_text() -> tuple[str, str]:
    """A fresh key and its prefix."""
    prefix = secrets.token_hex(6)
    return f"{_MARK}_{prefix}_{secrets.token_urlsafe(32)}", prefix


def digest(text: str) -> bytes:
    """What is kept of a key."""
    return hashlib.sha256(text.encode()).digest()


async def create(work: Work, name: str, role: str, expires_at: datetime | None) -> NewKey:
    """Make a key: the tenant's behind its wall, else the platform's."""
    text, prefix = new_text()
    statement = insert(api_key).values(
        tenant_id=work.tenant_id if isinstance(work, TenantWork) else None,
        name=name,
        role=role,
        prefix=prefix,
        digest=digest(text),
        expires_at=expires_at,
    )
    row = await work.one(statement.returning(api_key))
    await audit.record(work, "key.create", f"key/{prefix}", None, row)
    return NewKey(text, row)


async def listed(work: Work, wanted: Wanted) -> Page:
    """The tenant's keys behind its wall, else the platform's; revoked ones too."""
    statement = select(api_key)
    if not isinstance(work, TenantWork):
        statement = statement.where(api_key.c.tenant_id.is_(None))
    return await page(work, statement, ["prefix"], wanted)


async def revoke(work: Work, prefix: str) -> None:
    """Revoke a key; a revoked one stays as it is.

    Raises:
        NotFound: there is none of this prefix.
    """
    mine = api_key.c.tenant_id == work.tenant_id if isinstance(work, TenantWork) else api_key.c.tenant_id.is_(None)
    statement = select(api_key).where(api_key.c.prefix == prefix, mine).with_for_update()
    row = present(await work.find(statement))
    if row["revoked_at"] is not None:
        return
    revoking = update(api_key).where(api_key.c.id == row["id"]).values(revoked_at=func.now()).returning(api_key)
    after = await work.one(revoking)
    await audit.record(work, "key.revoke", f"key/{prefix}", row, after)


def is_key(text: str) -> bool:
    """Whether the text has the form of a key, so that looking for it makes sense."""
    mark, _, rest = text.partition("_")
    prefix, _, secret = rest.partition("_")
    return mark == _MARK and bool(secret) and prefix.isalnum() and text.isascii()


async def identify(work: Work, text: str) -> Row:
    """The key's row, if it is known and valid.

    Args:
        work: a transaction of the platform: whose key it is, is what is asked here.
        text: what the caller sent.

    Raises:
        NotAuthenticated: it is unknown, revoked or expired; the answer does not say which.
    """
    if not is_key(text):
        raise NotAuthenticated
    prefix = text.split("_")[1]
    valid = and_(
        api_key.c.revoked_at.is_(None),
        or_(api_key.c.expires_at.is_(None), api_key.c.expires_at > func.now()),
    )
    statement = select(api_key, func.now().label("present")).where(api_key.c.prefix == prefix, valid)
    row = await work.find(statement)
    if row is None or not hmac.compare_digest(row["digest"], digest(text)):
        raise NotAuthenticated
    if row["last_used_at"] is None or row["present"] - row["last_used_at"] > _LAST_USE_STEP:
        used = update(api_key).where(api_key.c.id == row["id"]).values(last_used_at=func.now())
        await work.run(used)
    return row
