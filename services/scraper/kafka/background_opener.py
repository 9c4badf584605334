"""Opens clients beside whoever wants them, for `clients`."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor

from services.scraper.kafka.cluster import KafkaCluster

_THREADS = 8
#: A cluster, and the version of what it is opened with.
Key = tuple[int, Hashable]


class Beside:
    """Opens clients in threads: one that needs a token makes whoever opens it wait for a second, and perhaps for ten."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None
        self._opening: dict[Key, Future[KafkaCluster]] = {}
        self._unproven: set[Key] = set()

    def open(self, key: Key, make: Callable[[], KafkaCluster], *, proven: bool = True) -> KafkaCluster | None:
        """The client that was asked for earlier; None while it is being opened.

        Args:
            key: whose, and with what.
            make: opens it.
            proven: whether the cluster answered when it was asked last.

        Raises:
            ValueError: from `make`.
        """
        for other in [other for other in self._opening if other[0] == key[0] and other != key]:
            self._opening.pop(other).cancel()
        asked = self._opening.get(key)
        if asked is None:
            self._threads = self._threads or ThreadPoolExecutor(_THREADS, "opening")
            self._opening[key] = self._threads.submit(make)
            self._unproven &= self._opening.keys()
            if not proven:
                self._unproven.add(key)
            return None
        if not asked.done():
            return None
        return self._opening.pop(key).result()

    def __contains__(self, key: Key) -> bool:
        return key in self._opening

    def __len__(self) -> int:
        return len(self._opening)

    def count_unproven(self) -> int:
        """Those being opened to clusters of which nobody knows whether they answer."""
        return len(self._unproven & self._opening.keys())

    def close(self) -> None:
        """Open nothing more."""
        self._opening.clear()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
