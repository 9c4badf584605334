"""What a change of one row came to, and the optimistic check of versions that every repository shares."""

from __future__ import annotations

from dataclasses import dataclass

from lagscale.errors import Conflict, NotFound
from lagscale.store.registry.database import Row


@dataclass(frozen=True, slots=True)
class Outcome:
    """The row as it is now; `created` and `changed` are both false when it was so already."""

    row: Row
    created: bool = False
    changed: bool = False


def check_version(row: Row, seen: int | None) -> None:
    """Refuse to overwrite what the caller has not seen.

    Args:
        row: as it is now.
        seen: the version that the caller read; None when the caller does not care.

    Raises:
        Conflict: it has changed since.
    """
    if seen is not None and int(row["version"]) != seen:
        raise Conflict(f"It has version {row['version']} now, not {seen}; read it again and repeat the change.")


def present(row: Row | None) -> Row:
    """The row.

    Raises:
        NotFound: there is none for this caller.
    """
    if row is None:
        raise NotFound
    return row
