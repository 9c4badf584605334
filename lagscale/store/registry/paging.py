"""Keyset pagination: a cursor carries the last row's sort key, so that pages stay stable under writes."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from lagscale.errors import FieldError, InvalidInput
from lagscale.store.registry.session import RegistrySession, Row

#: The most items of one page.
MAX_PAGE_SIZE = 500
#: Why a cursor is refused.
INVALID_CURSOR = FieldError("cursor", "invalid cursor; omit it to start from the first page")


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows, and the cursor of the next page; None at the end."""

    rows: Sequence[Row]
    after: str | None


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which page: `limit` rows after the cursor, from the beginning without one."""

    limit: int = 100
    after: str | None = None


async def read_page(
    session: RegistrySession, statement: sa.Select[Any], keys: Sequence[str], page_request: PageRequest
) -> Page:
    """One page of the statement, sorted by columns of text that are unique together.

    Raises:
        InvalidInput: the cursor is not one of this listing.
    """
    # Byte order: the same in every database, whatever its collation.
    columns = [sa.collate(statement.selected_columns[key], "C") for key in keys]
    if page_request.after is not None:
        last = decode_cursor(page_request.after, len(keys))
        statement = statement.where(sa.tuple_(*columns) > sa.tuple_(*[sa.literal(value, sa.Text) for value in last]))
    ordered = statement.order_by(*columns)
    return await cut_page(session, ordered, page_request.limit, lambda row: [str(row[key]) for key in keys])


async def cut_page(
    session: RegistrySession, ordered: sa.Select[Any], limit: int, sort_keys: Callable[[Row], Sequence[str]]
) -> Page:
    """The first `limit` rows of an ordered statement, and the cursor of the last of them if there are more."""
    limit = min(max(limit, 1), MAX_PAGE_SIZE)
    rows = await session.fetch_all(ordered.limit(limit + 1))
    return Page(rows[:limit], encode_cursor(sort_keys(rows[limit - 1])) if len(rows) > limit else None)


def encode_cursor(values: Sequence[str]) -> str:
    """A cursor of these sort keys."""
    return base64.urlsafe_b64encode(json.dumps(list(values)).encode()).decode().rstrip("=")


def decode_cursor(cursor: str, length: int) -> list[str]:
    """The sort keys of a cursor.

    Raises:
        InvalidInput: the cursor is not one of this listing.
    """
    try:
        values = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error):
        values = None
    if not isinstance(values, list) or len(values) != length or not all(_is_text(value) for value in values):
        raise InvalidInput([INVALID_CURSOR])
    return values


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value.isprintable()
