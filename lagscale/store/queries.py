"""Loads the named statements of the hot path from `sql/`; every adapter of this room may call it."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def load(name: str) -> str:
    """The text of `sql/<name>.sql`.

    Raises:
        FileNotFoundError: there is no such statement.
    """
    return files("lagscale.store").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
