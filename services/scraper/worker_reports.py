"""Reports of the pipeline's processes to the service: small datagrams on one machine. Losing one only dims a metric."""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import threading
from collections.abc import Callable
from typing import Any

_MAX_DATAGRAM_BYTES = 65_000


class WorkerReports:
    """Receives reports in a thread of its own.

    The name lies in the kernel's abstract namespace, so no file stays behind; a token keeps strangers' words out.
    """

    def __init__(self, on_report: Callable[[dict[str, Any]], None]) -> None:
        self._on_report = on_report
        self.address = f"lagscale-{secrets.token_hex(8)}/{secrets.token_hex(16)}"
        name, _, self._token = self.address.partition("/")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(f"\0{name}")
        self._thread = threading.Thread(target=self._receive, name="reports", daemon=True)

    def start(self) -> None:
        """Begin to receive."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._socket.close()

    def _receive(self) -> None:
        while True:
            try:
                text = self._socket.recv(_MAX_DATAGRAM_BYTES + 100)
            except OSError:
                return
            with contextlib.suppress(ValueError, TypeError, AttributeError):
                report = json.loads(text)
                if secrets.compare_digest(str(report.pop("token", "")), self._token):
                    self._on_report(report)


def report(address: str, kind: str, **facts: Any) -> None:
    """Tell the service something; never waits, never fails."""
    name, _, token = address.partition("/")
    text = json.dumps({"kind": kind, "token": token, **facts}).encode()
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        sender.sendto(text[:_MAX_DATAGRAM_BYTES], f"\0{name}")
