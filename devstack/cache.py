"""Downloads that survive between runs and clones: made beside their place and renamed only when whole."""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_folder() -> Path:
    """The user's cache of Lagscale's development parts."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "lagscale"


def fetch_once(name: str, fill: Callable[[Path], None]) -> Path:
    """The folder `name` of the cache, filled by `fill` unless an earlier run has filled it whole.

    Two runs at once wait for each other; a run that was interrupted leaves nothing that is taken for whole.
    """
    place = cache_folder() / name
    with _lock(cache_folder() / f"{name}.lock"):
        if place.is_dir():
            return place
        for leftover in cache_folder().glob(f"{name}.partial-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        partial = cache_folder() / f"{name}.partial-{uuid.uuid4().hex[:8]}"
        partial.mkdir(parents=True)
        fill(partial)
        partial.rename(place)
    return place


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
