"""API keys: `lsk_<prefix>_<secret>`, of which only the SHA-256 digest is stored. 256 random bits need no salt."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, func, select, update

from lagscale.errors import Conflict, InvalidInput, NotAuthenticated
from lagscale.store.registry import audit
from lagscale.store.registry.paging import Page, PageRequest, read_page
from lagscale.store.registry.session import RegistrySession, Row
from lagscale.store.registry.tables import api_key

PLATFORM_ADMIN = "platform-admin"
TENANT_ADMIN = "tenant-admin"
TENANT_VIEWER = "tenant-viewer"
ROLES = (PLATFORM_ADMIN, TENANT_ADMIN, TENANT_VIEWER)

_PREFIX = "lsk"
#: `last_used_at` is written at most this often, so that reads do not become writes.
_LAST_USE_INTERVAL = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class CreatedKey:
    """A new key, shown once to its creator."""

    text: str
    row: Row


def generate_api_key() -> tuple[str, str]:
    """A new key and its prefix."""
    prefix = secrets.token_hex(6)
    return f"{_PREFIX}_{prefix}_{secrets.token_urlsafe(32)}", prefix


def digest(text: str) -> bytes:
    """The stored digest of a key."""
    return hashlib.sha256(text.encode()).digest()


async def create(session: RegistrySession, name: str, role: str, expires_at: datetime | None) -> CreatedKey:
    """Create a key: the tenant's in its context, else the platform's."""
    text, prefix = generate_api_key()
    values: audit.Facts = {
        "tenant_id": session.tenant_id,
        "name": name,
        "role": role,
        "prefix": prefix,
        "digest": digest(text),
        "expires_at": expires_at,
    }
    return CreatedKey(text, (await audit.insert_row(session, api_key, values, "key.create", prefix)).row)


async def list_page(session: RegistrySession, page_request: PageRequest) -> Page:
    """The tenant's keys in its context, else the platform's; including revoked ones."""
    return await read_page(session, select(api_key).where(_is_owned(session)), ["prefix"], page_request)


async def revoke(session: RegistrySession, prefix: str) -> None:
    """Revoke a key; revoking a revoked one changes nothing.

    Raises:
        NotFound: there is none of this prefix.
    """
    statement = select(api_key).where(api_key.c.prefix == prefix, _is_owned(session)).with_for_update()
    row = await session.fetch_existing(statement)
    if row["revoked_at"] is not None:
        return
    revoking = update(api_key).where(api_key.c.id == row["id"]).values(revoked_at=func.now()).returning(api_key)
    after = await session.fetch_one(revoking)
    await audit.record(session, "key.revoke", f"key/{prefix}", row, after)


async def rotate(session: RegistrySession, prefix: str, overlap: timedelta, expires_at: datetime | None) -> CreatedKey:
    """Create a successor of the same name and role; the key itself expires after the overlap.

    The session is in the tenant's context for a tenant's key, else the platform's. Both keys are valid during the
    overlap; a key that expires earlier keeps its expiry. Without `expires_at` the successor gets the lifetime of the
    key; none if the key does not expire.

    Raises:
        NotFound: there is none of this prefix.
        Conflict: it is no longer valid, or has a successor.
        InvalidInput: the successor would be expired when it is created.
    """
    columns = (api_key, func.now().label("present"))
    statement = select(*columns).where(api_key.c.prefix == prefix, _is_owned(session)).with_for_update()
    row = await session.fetch_existing(statement)
    now = row.pop("present")
    _check_rotatable(row, now)
    if expires_at is not None and expires_at <= now:
        raise InvalidInput.of("expiresAt", "must be in the future")
    if expires_at is None and row["expires_at"] is not None:
        expires_at = now + (row["expires_at"] - row["created_at"])
    made = await create(session, row["name"], row["role"], expires_at)
    ends = min(now + overlap, row["expires_at"] or now + overlap)
    ending = update(api_key).where(api_key.c.id == row["id"]).values(expires_at=ends, replaced_by=made.row["prefix"])
    after = await session.fetch_one(ending.returning(api_key))
    await audit.record(session, "key.rotate", f"key/{prefix}", row, after)
    return made


def _check_rotatable(row: Row, now: datetime) -> None:
    if row["replaced_by"] is not None:
        raise Conflict(f"This key has already been replaced by {row['replaced_by']}; rotate that key.")
    if row["revoked_at"] is not None or (row["expires_at"] is not None and row["expires_at"] <= now):
        raise Conflict("This key is revoked or expired; create a new key.")


def _is_owned(session: RegistrySession) -> ColumnElement[bool]:
    return api_key.c.tenant_id.is_not_distinct_from(session.tenant_id)


def is_key(text: str) -> bool:
    """Whether the text has the form of a key; other texts need no lookup."""
    mark, _, rest = text.partition("_")
    prefix, _, secret = rest.partition("_")
    return mark == _PREFIX and bool(secret) and prefix.isalnum() and text.isascii()


async def identify(session: RegistrySession, text: str) -> Row:
    """The row of a valid key. The session is the platform's, because the key's tenant is not known yet.

    Raises:
        NotAuthenticated: it is unknown, revoked or expired. The response does not say which; the fact `reason` does,
            for the metrics.
    """
    if not is_key(text):
        raise NotAuthenticated(reason="malformed")
    prefix = text.split("_")[1]
    row = await session.fetch_optional(select(api_key, func.now().label("present")).where(api_key.c.prefix == prefix))
    if row is None or not hmac.compare_digest(row["digest"], digest(text)):
        raise NotAuthenticated(reason="unknown_key")
    if row["revoked_at"] is not None:
        raise NotAuthenticated(reason="revoked_key")
    if row["expires_at"] is not None and row["expires_at"] <= row["present"]:
        raise NotAuthenticated(reason="expired_key")
    if row["last_used_at"] is None or row["present"] - row["last_used_at"] > _LAST_USE_INTERVAL:
        used = update(api_key).where(api_key.c.id == row["id"]).values(last_used_at=func.now())
        await session.execute(used)
    return row
