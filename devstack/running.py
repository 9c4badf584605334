"""What `up` has started, remembered in the clone: `down` ends these processes and no others."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path
from typing import Any

from devstack.server import Server, ServerFailed, started_at, wait_until

_STATE = Path(__file__).resolve().parents[1] / ".devstack" / "running.json"
_GRACE_SECONDS = 20.0


class ProcessRegistry:
    """The processes that outlive the command that started them, and what is to be told about them.

    Args:
        state: the file that remembers them.
    """

    def __init__(self, state: Path = _STATE) -> None:
        self._state = state

    def record(self, server: Server) -> None:
        """Write down a process as soon as it runs, so that an interrupted start can be ended too."""
        document = self._read()
        document.setdefault("processes", {})[server.name] = {
            "pid": server.pid,
            "started": started_at(server.pid),
            "signal": int(server.stop_signal),
        }
        self._write(document)

    def save_facts(self, facts: dict[str, str]) -> None:
        """Write down what `status` shows beside the processes."""
        self._write({**self._read(), "facts": facts})

    @property
    def facts(self) -> dict[str, str]:
        """What was told beside the processes; empty while a start is not complete."""
        return dict(self._read().get("facts", {}))

    def alive(self) -> dict[str, int]:
        """Name -> process id of what still runs. A process id that another process has taken over does not count."""
        return {name: entry["pid"] for name, entry in self._processes().items() if _is_alive(entry)}

    def exited(self) -> list[str]:
        """Names of what was started and runs no more."""
        return [name for name, entry in self._processes().items() if not _is_alive(entry)]

    def end_all(self) -> list[str]:
        """End what still runs, in reverse order of its start; the names of what was ended."""
        ended = []
        for name, entry in reversed(list(self._processes().items())):
            if _is_alive(entry):
                _end(entry["pid"], entry["signal"])
                ended.append(name)
        self._state.unlink(missing_ok=True)
        return ended

    def _processes(self) -> dict[str, dict[str, Any]]:
        return dict(self._read().get("processes", {}))

    def _read(self) -> dict[str, Any]:
        return dict(json.loads(self._state.read_text())) if self._state.exists() else {}

    def _write(self, document: dict[str, Any]) -> None:
        """Replaced as a whole, so that nobody reads half of it; for the owner alone, because it holds the admin key."""
        self._state.parent.mkdir(parents=True, exist_ok=True)
        partial = self._state.with_suffix(".partial")
        partial.touch(mode=0o600)
        partial.write_text(json.dumps(document, indent=1))
        partial.replace(self._state)


def _is_alive(entry: dict[str, Any]) -> bool:
    return entry["started"] is not None and started_at(entry["pid"]) == entry["started"]


def _end(pid: int, number: int) -> None:
    start = started_at(pid)
    with contextlib.suppress(ProcessLookupError):
        # A paused process could not hear anything else.
        os.killpg(pid, signal.SIGCONT)
        os.kill(pid, number)
    with contextlib.suppress(ServerFailed):
        wait_until(lambda: started_at(pid) != start, _GRACE_SECONDS, "it did not end")
    with contextlib.suppress(ProcessLookupError):
        # Each was started in a group of its own; what is left of it goes with it.
        os.killpg(pid, signal.SIGKILL)
