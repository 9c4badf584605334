"""Cached downloads shared by all runs and clones: written to a temporary folder and renamed when complete."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_folder() -> Path:
    """The user's cache folder for Lagscale's development dependencies."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "lagscale"


def fetch_once(name: str, fill: Callable[[Path], None], folder: Path | None = None) -> Path:
    """The folder `name` of the cache, or of another `folder`, filled by `fill` unless it exists.

    Concurrent runs wait for each other; an interrupted run leaves no incomplete folder under this name.
    """
    folder = folder or cache_folder()
    place = folder / name
    with _lock(folder / f"{name}.lock"):
        if place.is_dir():
            return place
        for leftover in folder.glob(f"{name}.partial-*"):
            _remove(leftover)
        partial = folder / f"{name}.partial-{uuid.uuid4().hex[:8]}"
        partial.mkdir(parents=True)
        fill(partial)
        partial.rename(place)
    return place


def _remove(leftover: Path) -> None:
    """Remove the folder of an interrupted run. Unmount first: debootstrap mounts /proc and /sys in it."""
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for mount in sorted((one for one in mounts if one.startswith(f"{leftover}/")), reverse=True):
        subprocess.run(["umount", mount], check=True, capture_output=True)
    shutil.rmtree(leftover, ignore_errors=True)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
