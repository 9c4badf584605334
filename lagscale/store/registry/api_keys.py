"""API keys: `lsk_<prefix>_<secret>`, of which only the SHA-256 digest is kept. 256 random bits need no salt."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, func, insert, select, update

from lagscale.errors import Conflict, Fault, InvalidInput, NotAuthenticated
from lagscale.store.registry import audit
from lagscale.store.registry.paging import Page, Wanted, page
from lagscale.store.registry.session import Row, TenantWork, Work
from lagscale.store.registry.tables import api_key
from lagscale.store.registry.versions import present

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
    statement = select(api_key).where(api_key.c.prefix == prefix, _mine(work)).with_for_update()
    row = present(await work.find(statement))
    if row["revoked_at"] is not None:
        return
    revoking = update(api_key).where(api_key.c.id == row["id"]).values(revoked_at=func.now()).returning(api_key)
    after = await work.one(revoking)
    await audit.record(work, "key.revoke", f"key/{prefix}", row, after)


async def rotate(work: Work, prefix: str, overlap: timedelta, expires_at: datetime | None) -> NewKey:
    """Make a successor of the same name and role; the key itself goes on for the overlap, and no longer.

    Args:
        work: the tenant's key behind its wall, else the platform's.
        prefix: the key's.
        overlap: how long both are valid; a key that ends sooner ends then.
        expires_at: of the successor. None gives it as long a life as the key was given, none if that has no end.

    Raises:
        NotFound: there is none of this prefix.
        Conflict: it is not valid any more, or has a successor already.
        InvalidInput: the successor would be expired when it is made.
    """
    columns = (api_key, func.now().label("present"))
    statement = select(*columns).where(api_key.c.prefix == prefix, _mine(work)).with_for_update()
    row = present(await work.find(statement))
    now = row.pop("present")
    _check_rotatable(row, now)
    if expires_at is not None and expires_at <= now:
        raise InvalidInput([Fault("expiresAt", "must lie in the future")])
    if expires_at is None and row["expires_at"] is not None:
        expires_at = now + (row["expires_at"] - row["created_at"])
    made = await create(work, row["name"], row["role"], expires_at)
    ends = min(now + overlap, row["expires_at"] or now + overlap)
    ending = update(api_key).where(api_key.c.id == row["id"]).values(expires_at=ends, replaced_by=made.row["prefix"])
    after = await work.one(ending.returning(api_key))
    await audit.record(work, "key.rotate", f"key/{prefix}", row, after)
    return made


def _check_rotatable(row: Row, now: datetime) -> None:
    if row["replaced_by"] is not None:
        raise Conflict(f"This key has a successor, {row['replaced_by']}, already; rotate that one.")
    if row["revoked_at"] is not None or (row["expires_at"] is not None and row["expires_at"] <= now):
        raise Conflict("This key is revoked or expired, so nothing needs an overlap; make a new key.")


def _mine(work: Work) -> ColumnElement[bool]:
    tenant_id = work.tenant_id if isinstance(work, TenantWork) else None
    return api_key.c.tenant_id.is_(None) if tenant_id is None else api_key.c.tenant_id == tenant_id


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
        NotAuthenticated: it is unknown, revoked or expired. The answer does not say which; the fact `reason` does,
            for the metrics.
    """
    if not is_key(text):
        raise NotAuthenticated(reason="malformed")
    prefix = text.split("_")[1]
    row = await work.find(select(api_key, func.now().label("present")).where(api_key.c.prefix == prefix))
    if row is None or not hmac.compare_digest(row["digest"], digest(text)):
        raise NotAuthenticated(reason="unknown_key")
    if row["revoked_at"] is not None:
        raise NotAuthenticated(reason="revoked_key")
    if row["expires_at"] is not None and row["expires_at"] <= row["present"]:
        raise NotAuthenticated(reason="expired_key")
    if row["last_used_at"] is None or row["present"] - row["last_used_at"] > _LAST_USE_STEP:
        used = update(api_key).where(api_key.c.id == row["id"]).values(last_used_at=func.now())
        await work.run(used)
    return row
