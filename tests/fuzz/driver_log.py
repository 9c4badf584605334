"""The statements that a process runs through psycopg, by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from lagscale.store.queries import load, statements


@contextmanager
def record_statements() -> Iterator[list[str]]:
    """Every statement that runs in this block: its name, else its first 60 characters."""
    names = {load(name): name for name in statements() if not name.startswith("part_")}
    recorded: list[str] = []
    execute = psycopg.AsyncCursor.execute

    async def recording_execute(self: Any, query: Any, *given: Any, **how: Any) -> Any:
        text = query if isinstance(query, str) else bytes(query).decode() if isinstance(query, bytes) else str(query)
        recorded.append(names.get(text, text[:60]))
        return await execute(self, query, *given, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.AsyncCursor, "execute", recording_execute)
        yield recorded
