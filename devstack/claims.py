"""Data folders of servers for one run; a later run removes the folders of killed runs."""

from __future__ import annotations

import contextlib
import fcntl
import json
import shutil
import signal
import uuid
from pathlib import Path
from typing import Any

from devstack.server import Server, family, signal_all, started_at

#: Referenced here, so that garbage collection does not release a claim while its server runs.
_active_claims: set[Claim] = set()
_CLAIMS = Path(__file__).resolve().parents[1] / ".devstack" / "claims"
#: Of a claim that its process has not locked and written yet.
_PARTIAL = ".partial"


class Claim:
    """A folder, optionally with its server, that belongs to this process as long as it runs.

    The claim is a locked file: the kernel releases the lock when the process ends in any way, so that a later run
    finds what is unused, without relying on process ids.

    Args:
        folder: removed on release, or by a later run.
        claims: directory of the claims of this clone.
    """

    def __init__(self, folder: Path, claims: Path = _CLAIMS) -> None:
        self._folder = folder
        claims.mkdir(parents=True, exist_ok=True)
        sweep(claims)
        self._file = claims / uuid.uuid4().hex
        # Locked before it gets its final name.
        partial = self._file.with_suffix(_PARTIAL)
        self._lock = partial.open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._write({})
        partial.rename(self._file)
        _active_claims.add(self)

    def record_server(self, server: Server) -> None:
        """Record the server that uses the folder."""
        self._write({"pid": server.pid, "started": started_at(server.pid)})

    def release(self) -> None:
        """Remove the folder; its server must have ended."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._file.unlink(missing_ok=True)
        self._lock.close()
        _active_claims.discard(self)

    def _write(self, server: dict[str, int | None]) -> None:
        self._lock.seek(0)
        self._lock.truncate()
        self._lock.write(json.dumps({"folder": str(self._folder), **server}))
        self._lock.flush()


def sweep(claims: Path = _CLAIMS) -> list[Path]:
    """End servers and remove folders whose owner has ended; return the folders."""
    swept = []
    for file in claims.glob("*"):
        with contextlib.suppress(FileNotFoundError, BlockingIOError), file.open() as claim:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            text = claim.read()
            if text:
                swept.append(_clear(json.loads(text)))
            # An empty one may belong to a process that is about to lock it.
            if text or file.suffix != _PARTIAL:
                file.unlink(missing_ok=True)
    return swept


def _clear(claim: dict[str, Any]) -> Path:
    pid, started = claim.get("pid"), claim.get("started")
    if pid is not None and started is not None and started_at(pid) == started:
        # Usually it ended with its owner; a paused one could not.
        signal_all(family(pid), signal.SIGKILL)
    folder = Path(claim["folder"])
    shutil.rmtree(folder, ignore_errors=True)
    return folder
