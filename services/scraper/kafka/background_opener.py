"""Opens clients beside whoever wants them, for `clients`."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor

from services.scraper.kafka.cluster import KafkaCluster

_THREADS = 8
#: A cluster, and the version of what it is opened with.
ClientKey = tuple[int, Hashable]


class BackgroundOpener:
    """Opens clients in threads: one that needs a token makes whoever opens it wait for a second, and perhaps for ten."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None
        self._pending: dict[ClientKey, Future[KafkaCluster]] = {}
        self._unresponsive: set[ClientKey] = set()

    def open(self, key: ClientKey, make: Callable[[], KafkaCluster], *, responsive: bool = True) -> KafkaCluster | None:
        """The client that was asked for earlier; None while it is being opened.

        Args:
            key: whose, and with what.
            make: opens it.
            responsive: whether the cluster answered when it was asked last.

        Raises:
            ValueError: from `make`.
        """
        for other in [other for other in self._pending if other[0] == key[0] and other != key]:
            self._pending.pop(other).cancel()
        asked = self._pending.get(key)
        if asked is None:
            self._threads = self._threads or ThreadPoolExecutor(_THREADS, "opening")
            self._pending[key] = self._threads.submit(make)
            self._unresponsive &= self._pending.keys()
            if not responsive:
                self._unresponsive.add(key)
            return None
        if not asked.done():
            return None
        return self._pending.pop(key).result()

    def __contains__(self, key: ClientKey) -> bool:
        return key in self._pending

    def __len__(self) -> int:
        return len(self._pending)

    def count_unresponsive(self) -> int:
        """Those being opened to clusters of which nobody knows whether they answer."""
        return len(self._unresponsive & self._pending.keys())

    def close(self) -> None:
        """Open nothing more."""
        self._pending.clear()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
