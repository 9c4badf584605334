"""The log of a conversion: the outcome of every key of an object, warnings, tasks and errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class KeyOutcome(StrEnum):
    """Outcome of a key."""

    KEPT = "kept"
    CHANGED = "changed"
    DROPPED = "dropped"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class KeyNote:
    """Outcome of one key, with the reason. `key` is its path, as in `triggers[0].metadata.topic`."""

    key: str
    outcome: KeyOutcome
    reason: str


@dataclass(slots=True)
class ConversionLog:
    """The log of one object.

    Attributes:
        entries: one per key.
        warnings: for its owner, each once.
        field_errors: why it is not converted.
        tasks: what remains to be done by hand, each once.
    """

    entries: list[KeyNote] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    field_errors: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)

    def keep(self, key: str, reason: str) -> None:
        """Log a key that stays."""
        self.entries.append(KeyNote(key, KeyOutcome.KEPT, reason))

    def change(self, key: str, reason: str) -> None:
        """Log a key that changes."""
        self.entries.append(KeyNote(key, KeyOutcome.CHANGED, reason))

    def drop(self, key: str, reason: str) -> None:
        """Log a key that is removed."""
        self.entries.append(KeyNote(key, KeyOutcome.DROPPED, reason))

    def add(self, key: str, reason: str) -> None:
        """Log a new key."""
        self.entries.append(KeyNote(key, KeyOutcome.ADDED, reason))

    def reject(self, key: str, text: str, advice: str = "") -> None:
        """Add an error that KEDA reports too, with what to do."""
        self.field_errors.append(f"{key}: {text} (KEDA rejects it too){advice}")

    def add_warning(self, text: str) -> None:
        """Add a warning, unless it is there."""
        if text not in self.warnings:
            self.warnings.append(text)

    def add_task(self, text: str) -> None:
        """Add a task, unless it is there."""
        if text not in self.tasks:
            self.tasks.append(text)
