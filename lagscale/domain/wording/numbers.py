"""Numbers and durations in sentences; alone because every module of sentences uses it."""

from __future__ import annotations


def format_number(value: float) -> str:
    """With thousands separators and at most three decimals."""
    return f"{value:,.3f}".rstrip("0").rstrip(".")


def format_seconds(milliseconds: int) -> str:
    """Milliseconds as seconds with their unit."""
    return f"{format_number(milliseconds / 1000)} s"


def format_age(milliseconds: int) -> str:
    """Like `format_seconds`, but in whole seconds from 10 s on."""
    seconds = milliseconds / 1000
    return f"{format_number(seconds if seconds < 10 else round(seconds))} s"
