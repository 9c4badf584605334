"""Which services there are, read off `pyproject.toml`, so that no convention keeps a list of its own."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def read_project() -> dict[str, Any]:
    """The table `project` of `pyproject.toml`."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        loaded: dict[str, Any] = tomllib.load(file)["project"]
    return loaded


#: Console script -> service, which is also the extra and the lock of its dependencies.
SCRIPTS = {script: target.split(".")[1] for script, target in read_project()["scripts"].items()}
#: Services that run in a container for as long as Lagscale is deployed; the command does not.
DEPLOYED = tuple(service for service in SCRIPTS.values() if service != "cli")
