"""What the importer has to say of an object: every key with what became of it, warnings, and faults."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    """What became of a key."""

    TAKEN = "taken over"
    CHANGED = "changed"
    DROPPED = "dropped"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class Entry:
    """One key, what became of it, and why. `key` is its path, as in `triggers[0].metadata.topic`."""

    key: str
    outcome: Outcome
    why: str


@dataclass(slots=True)
class Findings:
    """Of one object.

    Attributes:
        entries: every key of it.
        warnings: what its owner should know, once for each object.
        faults: why it is not converted; KEDA refuses most of these as well.
        to_do: what apply needs and the manifests do not hold.
    """

    entries: list[Entry] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    to_do: list[str] = field(default_factory=list)

    def say(self, key: str, outcome: Outcome, why: str) -> None:
        """Tell of a key."""
        self.entries.append(Entry(key, outcome, why))

    def warn(self, text: str) -> None:
        """Warn once."""
        if text not in self.warnings:
            self.warnings.append(text)

    def need(self, text: str) -> None:
        """Ask once for what is missing."""
        if text not in self.to_do:
            self.to_do.append(text)
