"""Requests that a group's coordinator answers: few under way at once, and none that the library gives up before it.

For `kafka.py`. librdkafka up to 2.16 aborts its process when a request ends by its own limit of time while its
coordinator is looked up, and the look-up is answered later (confluentinc/librdkafka#5397). Thousands of groups that are
asked for at once make a healthy broker that late. So the library has far more time than its caller, who goes on without
an answer; what he gave up is not asked for again before it has ended; and no more is under way than is answered soon.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

#: Seconds that the library has for a request at least.
MIN_REQUEST_SECONDS = 20.0
#: Requests of one kind under way at once.
MAX_PENDING = 256

Reply = TypeVar("Reply")
Read = Callable[["Future[Any] | None"], Reply]


class CoordinatorRequests:
    """Requests of one kind to the coordinators of one cluster, by the group's name. For several threads."""

    def __init__(self) -> None:
        self._pending: set[Future[Any]] = set()
        self._abandoned: dict[str, Future[Any]] = {}
        self._late: frozenset[str] = frozenset()
        self._lock = threading.Lock()

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is under way."""
        return not self._pending

    def ask(
        self, groups: Collection[str], send: Callable[[str, float], Future[Any]], until: float
    ) -> Callable[[Read[Reply]], dict[str, Reply]]:
        """Ask for the first groups now; for the others while the result is called, which collects the answers.

        Args:
            groups: whom to ask for. Those who were late are the first, so that a short time is shared by all.
            send: sends a request that the library gives up after so many seconds.
            until: by `time.monotonic()`; nothing is sent later.

        Returns:
            Collects what it is given to read: a future that may not be done, or None for what was not asked.
        """
        timeout = max(MIN_REQUEST_SECONDS, 2 * (until - time.monotonic()))
        abandoned = self._update_abandoned({})
        free = [group for group in groups if group not in abandoned]
        waiting = deque(sorted(free, key=lambda group: group not in self._late))
        asked: deque[tuple[str, Future[Any]]] = deque()

        def send_more() -> None:
            while waiting and len(asked) < MAX_PENDING and time.monotonic() < until:
                group = waiting.popleft()
                future = send(group, timeout)
                self._pending.add(future)
                future.add_done_callback(self._pending.discard)
                asked.append((group, future))

        def collect(read: Read[Reply]) -> dict[str, Reply]:
            replies: dict[str, Reply] = {}
            sent: dict[str, Future[Any]] = {}
            while asked:
                group, future = asked.popleft()
                sent[group] = future
                replies[group] = read(future)
                send_more()
            abandoned = self._update_abandoned(sent)
            self._late = frozenset(group for group in groups if group not in replies or group in abandoned)
            return {group: replies[group] if group in replies else read(None) for group in groups}

        send_more()
        return collect

    def _update_abandoned(self, more: Mapping[str, Future[Any]]) -> frozenset[str]:
        """The groups whose requests are under way though nobody waits for them any more, these included."""
        with self._lock:
            self._abandoned = {group: one for group, one in (self._abandoned | dict(more)).items() if not one.done()}
            return frozenset(self._abandoned)
