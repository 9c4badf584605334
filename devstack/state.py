"""State of `up` in the clone: its ports and keys, and the processes that `down` ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path
from typing import Any

from devstack.server import Server, ServerFailed, free_port, is_free, started_at, wait_until

_STATE = Path(__file__).resolve().parents[1] / ".devstack" / "running.json"
_GRACE_SECONDS = 20.0


class SavedState:
    """Ports and keys of `up` by name, so that what was registered and encrypted survives `down` and `up`.

    Args:
        file: where they are stored; readable by its owner only.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._values: dict[str, Any] = _read(file)

    def port(self, name: str) -> int:
        """The port of that name; a new one if it is in use."""
        port = self._values.get(name)
        if isinstance(port, int) and is_free(port):
            return port
        return int(self._save(name, free_port()))

    def text(self, name: str, new: str) -> str:
        """The value of that name; `new` the first time."""
        return str(self._values[name] if name in self._values else self._save(name, new))

    def _save(self, name: str, value: int | str) -> int | str:
        self._values[name] = value
        _write(self._file, self._values)
        return value


class ProcessRegistry:
    """The processes that outlive the command that started them, and the facts that `status` shows.

    Args:
        state: the file where they are recorded.
    """

    def __init__(self, state: Path = _STATE) -> None:
        self._state = state

    def record(self, server: Server) -> None:
        """Record a process as soon as it runs, so that an interrupted start can be ended too."""
        document = _read(self._state)
        document.setdefault("processes", {})[server.name] = {
            "pid": server.pid,
            "started": started_at(server.pid),
            "signal": int(server.stop_signal),
        }
        _write(self._state, document)

    def save_facts(self, facts: dict[str, str]) -> None:
        """Record what `status` shows in addition to the processes."""
        _write(self._state, {**_read(self._state), "facts": facts})

    @property
    def facts(self) -> dict[str, str]:
        """The recorded facts; empty until a start is complete."""
        return dict(_read(self._state).get("facts", {}))

    def alive(self) -> dict[str, int]:
        """Name -> process id of running processes. A reused process id does not count."""
        return {name: entry["pid"] for name, entry in self._processes().items() if _is_alive(entry)}

    def exited(self) -> list[str]:
        """Names of processes that have ended."""
        return [name for name, entry in self._processes().items() if not _is_alive(entry)]

    def end_all(self) -> list[str]:
        """End the running processes in reverse order of their start; return their names."""
        ended = []
        for name, entry in reversed(list(self._processes().items())):
            if _is_alive(entry):
                _end(entry["pid"], entry["signal"])
                ended.append(name)
        self._state.unlink(missing_ok=True)
        return ended

    def _processes(self) -> dict[str, dict[str, Any]]:
        return dict(_read(self._state).get("processes", {}))


def _read(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text())) if file.exists() else {}


def _write(file: Path, document: dict[str, Any]) -> None:
    """Replace the file as a whole, so that no reader gets half of it; for the owner only, because it contains keys."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial")
    partial.touch(mode=0o600)
    partial.write_text(json.dumps(document, indent=1))
    partial.replace(file)


def _is_alive(entry: dict[str, Any]) -> bool:
    return entry["started"] is not None and started_at(entry["pid"]) == entry["started"]


def _end(pid: int, number: int) -> None:
    start = started_at(pid)
    with contextlib.suppress(ProcessLookupError):
        # A paused process receives no other signal.
        os.killpg(pid, signal.SIGCONT)
        os.kill(pid, number)
    with contextlib.suppress(ServerFailed):
        wait_until(lambda: started_at(pid) != start, _GRACE_SECONDS, "it did not end")
    with contextlib.suppress(ProcessLookupError):
        # Each was started in a process group of its own; this ends the rest of the group.
        os.killpg(pid, signal.SIGKILL)
