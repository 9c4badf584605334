"""Loads the named statements of the hot path from the `sql/` folders of this room; every adapter may call it."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

_INCLUDE = re.compile(r"^-- include (part_\w+)$", re.MULTILINE)


@cache
def load(name: str) -> str:
    """The text of `<subject>/sql/<name>.sql`; a line `-- include part_x` stands for that file's text.

    Raises:
        FileNotFoundError: there is no such statement.
    """
    path = statements().get(name)
    if path is None:
        raise FileNotFoundError(f"no statement is named {name}")
    return _INCLUDE.sub(lambda found: load(found[1]), path.read_text(encoding="utf-8"))


@cache
def statements() -> dict[str, Traversable]:
    """Every statement's file by its name, parts included; names are unique over all folders."""
    folders = [folder.joinpath("sql") for folder in files("lagscale.store").iterdir() if folder.is_dir()]
    return {path.name.removesuffix(".sql"): path for folder in folders if folder.is_dir() for path in folder.iterdir()}
