"""Ports and keys of `up`, kept in the clone: what was registered and sealed under them holds after `down` and `up`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from devstack.server import free_port, is_free


class SavedState:
    """Ports and texts by name, read from a file and written back when one is new.

    Args:
        file: where they are kept; readable by its owner alone.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._values: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}

    def port(self, name: str) -> int:
        """The port of that name; another one if somebody has taken it meanwhile."""
        port = self._values.get(name)
        if isinstance(port, int) and is_free(port):
            return port
        return int(self._save(name, free_port()))

    def text(self, name: str, new: str) -> str:
        """The text of that name; `new` the first time."""
        return str(self._values[name] if name in self._values else self._save(name, new))

    def _save(self, name: str, value: int | str) -> int | str:
        self._values[name] = value
        self._file.parent.mkdir(parents=True, exist_ok=True)
        partial = self._file.with_suffix(".partial")
        partial.touch(mode=0o600)
        partial.write_text(json.dumps(self._values, indent=1))
        partial.replace(self._file)
        return value
