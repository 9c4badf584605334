"""What the importer has to say of an object: every key with what became of it, warnings, and faults."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class KeyOutcome(StrEnum):
    """What became of a key."""

    TAKEN = "taken over"
    CHANGED = "changed"
    DROPPED = "dropped"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class KeyNote:
    """One key, what became of it, and why. `key` is its path, as in `triggers[0].metadata.topic`."""

    key: str
    outcome: KeyOutcome
    why: str


@dataclass(slots=True)
class ConversionLog:
    """Of one object.

    Attributes:
        entries: every key of it.
        warnings: what its owner should know, once for each object.
        field_errors: why it is not converted; KEDA refuses most of these as well.
        tasks: what apply needs and the manifests do not hold.
    """

    entries: list[KeyNote] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    field_errors: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)

    def add_key(self, key: str, outcome: KeyOutcome, why: str) -> None:
        """Tell of a key."""
        self.entries.append(KeyNote(key, outcome, why))

    def add_warning(self, text: str) -> None:
        """Warn once."""
        if text not in self.warnings:
            self.warnings.append(text)

    def add_task(self, text: str) -> None:
        """Ask once for what is missing."""
        if text not in self.tasks:
            self.tasks.append(text)
