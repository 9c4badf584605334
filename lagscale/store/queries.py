"""Loads the named statements of the hot path from `sql/`; every adapter of this room may call it."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_INCLUDE = re.compile(r"^-- include (part_\w+)$", re.MULTILINE)


@cache
def load(name: str) -> str:
    """The text of `sql/<name>.sql`; a line `-- include part_x` stands for that file's text.

    Raises:
        FileNotFoundError: there is no such statement.
    """
    text = files("lagscale.store").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
    return _INCLUDE.sub(lambda found: load(found[1]), text)
