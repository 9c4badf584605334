"""Reports of Spark's processes to the service: small datagrams on one machine. A lost one only dims a metric."""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

_MAX_DATAGRAM_BYTES = 65_000


@dataclass
class BatchPart:
    """What one task wrote.

    Attributes:
        built: rounds that made a row.
        samples: samples stored, one for each partition of a round.
        doubled: rounds that were stored before.
        future: rounds ahead of the database's clock.
        late: rounds not later than the newest stored one.
        lost_lease: whether another scraper is the leader, so nothing was written.
        codes: polls by `object:state`.
        ages_ms: age of the newest sample by cluster, when it was stored.
        since_plan_ms: time from the plan to the commit.
    """

    built: int = 0
    stored: int = 0
    samples: int = 0
    doubled: int = 0
    future: int = 0
    late: int = 0
    lost_lease: bool = False
    store_error: str = ""
    codes: dict[str, int] = field(default_factory=dict)
    ages_ms: dict[int, int] = field(default_factory=dict)
    since_plan_ms: int = 0

    @classmethod
    def merge(cls, parts: Iterable[BatchPart]) -> BatchPart:
        """The whole batch."""
        whole, codes = cls(), Counter[str]()
        for part in parts:
            for name in ("built", "stored", "samples", "doubled", "future", "late"):
                setattr(whole, name, getattr(whole, name) + getattr(part, name))
            whole.lost_lease |= part.lost_lease
            whole.store_error = whole.store_error or part.store_error
            codes.update(part.codes)
            whole.ages_ms |= part.ages_ms
            whole.since_plan_ms = max(whole.since_plan_ms, part.since_plan_ms)
        whole.codes = dict(codes)
        return whole


class WorkerReports:
    """Receives reports in a thread of its own.

    The address is in the kernel's abstract namespace, so it leaves no file; its token keeps out other processes' reports.
    """

    def __init__(self, on_report: Callable[[dict[str, Any]], None]) -> None:
        self._on_report = on_report
        self.address = f"lagscale-{secrets.token_hex(8)}/{secrets.token_hex(16)}"
        name, _, self._token = self.address.partition("/")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(f"\0{name}")
        self._thread = threading.Thread(target=self._receive, name="reports", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Close the socket, which ends the thread."""
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


def send_report(address: str, kind: str, **facts: Any) -> None:
    """Send a report to the service; never blocks, never fails."""
    name, _, token = address.partition("/")
    text = json.dumps({"kind": kind, "token": token, **facts}).encode()
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        sender.sendto(text[:_MAX_DATAGRAM_BYTES], f"\0{name}")
