"""The outcome of a write, and the optimistic check of versions before it."""

from __future__ import annotations

from dataclasses import dataclass

from lagscale.errors import NotFound, PreconditionFailed
from lagscale.store.registry.session import Row


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The row after a write; `created` and `changed` are both false when nothing had to change.

    `before` is the former row of a changed tenant.
    """

    row: Row
    created: bool = False
    changed: bool = False
    before: Row | None = None


@dataclass(frozen=True, slots=True)
class Precondition:
    """The state that the caller expects of the object.

    Attributes:
        versions: one of these; empty: any version, but the object exists.
        absent: it does not exist.
    """

    versions: frozenset[int] = frozenset()
    absent: bool = False


def check_precondition(row: Row | None, precondition: Precondition | None) -> None:
    """Check the caller's precondition.

    Args:
        row: the present row; None where there is none.
        precondition: None is always met.

    Raises:
        PreconditionFailed: it is not met.
    """
    if precondition is None:
        return
    if precondition.absent:
        if row is not None:
            text = "Already exists; omit If-None-Match to replace it, or choose another name."
            raise PreconditionFailed(text, field="If-None-Match")
        return
    if row is None:
        raise PreconditionFailed("Does not exist; omit If-Match to create it.")
    if precondition.versions and int(row["version"]) not in precondition.versions:
        read = " or ".join(str(version) for version in sorted(precondition.versions))
        raise PreconditionFailed(
            f"Version conflict: current version is {row['version']}, expected {read}; read it again and retry."
        )


def require_row(row: Row | None) -> Row:
    """The row.

    Raises:
        NotFound: there is none for this caller.
    """
    if row is None:
        raise NotFound
    return row
