"""What a process asks its database through psycopg, by the names of the statements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from lagscale.store.queries import load, statements


@contextmanager
def asked() -> Iterator[list[str]]:
    """Every statement that runs in this block: its name, else its first words."""
    names = {load(name): name for name in statements() if not name.startswith("part_")}
    seen: list[str] = []
    execute = psycopg.AsyncCursor.execute

    async def listened(self: Any, query: Any, *given: Any, **how: Any) -> Any:
        text = query if isinstance(query, str) else bytes(query).decode() if isinstance(query, bytes) else str(query)
        seen.append(names.get(text, text[:60]))
        return await execute(self, query, *given, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.AsyncCursor, "execute", listened)
        yield seen
