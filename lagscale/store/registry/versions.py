"""What a change of one row came to, and the optimistic check of versions that every repository shares."""

from __future__ import annotations

from dataclasses import dataclass

from lagscale.errors import NotFound, PreconditionFailed
from lagscale.store.registry.session import Row


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The row as it is now; `created` and `changed` are both false when it was so already.

    `before` is the row of a tenant that was changed.
    """

    row: Row
    created: bool = False
    changed: bool = False
    before: Row | None = None


@dataclass(frozen=True, slots=True)
class Precondition:
    """What the caller knows of the object that it changes.

    Attributes:
        versions: it has one of these; empty: it is there in whatever version.
        absent: it is not there.
    """

    versions: frozenset[int] = frozenset()
    absent: bool = False


def check_precondition(row: Row | None, precondition: Precondition | None) -> None:
    """Refuse to overwrite what the caller has not seen.

    Args:
        row: as it is now, None where there is none.
        precondition: what the caller knows; None when the caller does not care.

    Raises:
        PreconditionFailed: it is not so.
    """
    if precondition is None:
        return
    if precondition.absent:
        if row is not None:
            text = "It exists already; leave If-None-Match out to change it, or take another name."
            raise PreconditionFailed(text, field="If-None-Match")
        return
    if row is None:
        raise PreconditionFailed("It does not exist, and If-Match asks for it; leave If-Match out to create it.")
    if precondition.versions and int(row["version"]) not in precondition.versions:
        read = " or ".join(str(version) for version in sorted(precondition.versions))
        raise PreconditionFailed(
            f"It has version {row['version']} now, not {read}; read it again and repeat the change."
        )


def require_row(row: Row | None) -> Row:
    """The row.

    Raises:
        NotFound: there is none for this caller.
    """
    if row is None:
        raise NotFound
    return row
