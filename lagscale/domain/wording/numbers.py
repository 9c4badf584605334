"""Numbers with their nouns, for sentences and summaries."""

from __future__ import annotations


def format_count(number: int, noun: str, plural: str = "") -> str:
    """A number and its noun, as in `1 message` and `2,000 messages`; `plural` if it is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
