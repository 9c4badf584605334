"""What `up` has started, remembered in the clone: `down` ends these processes and no others."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path
from typing import Any

from devstack.server import Server, started_at, wait_until

_STATE = Path(__file__).resolve().parents[1] / ".devstack" / "running.json"
_GRACE_SECONDS = 20.0


def remember(servers: dict[str, Server], signals: dict[str, int], facts: dict[str, str]) -> None:
    """Write down each process with its start time, and what `status` shows."""
    processes = {
        name: {"pid": server.pid, "started": started_at(server.pid), "signal": signals.get(name, signal.SIGTERM)}
        for name, server in servers.items()
        if server.process is not None
    }
    _STATE.parent.mkdir(parents=True, exist_ok=True)
    _STATE.write_text(json.dumps({"processes": processes, "facts": facts}, indent=1))
    _STATE.chmod(0o600)


def facts() -> dict[str, str]:
    """What was remembered beside the processes."""
    return dict(_read().get("facts", {}))


def alive() -> dict[str, int]:
    """Name -> process id of what still runs. A process id that another process has taken over does not count."""
    processes = _read().get("processes", {})
    return {name: entry["pid"] for name, entry in processes.items() if started_at(entry["pid"]) == entry["started"]}


def end_all() -> list[str]:
    """End what still runs, in reverse order of its start; the names of what was ended."""
    ended = []
    processes = _read().get("processes", {})
    for name, pid in reversed(list(alive().items())):
        _end(pid, processes[name]["signal"])
        ended.append(name)
    _STATE.unlink(missing_ok=True)
    return ended


def _end(pid: int, number: int) -> None:
    start = started_at(pid)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
    with contextlib.suppress(RuntimeError):
        wait_until(lambda: started_at(pid) != start, _GRACE_SECONDS, "it did not end")
    with contextlib.suppress(ProcessLookupError):
        # Each was started in a group of its own; what is left of it goes with it.
        os.killpg(pid, signal.SIGKILL)


def _read() -> dict[str, Any]:
    return dict(json.loads(_STATE.read_text())) if _STATE.exists() else {}
