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
PATIENCE = 20.0
#: Requests of one kind under way at once.
AT_ONCE = 256

Answer = TypeVar("Answer")
Read = Callable[["Future[Any] | None"], Answer]


class Coordinated:
    """Requests of one kind to the coordinators of one cluster, by the group's name. For several threads."""

    def __init__(self) -> None:
        self._under_way: set[Future[Any]] = set()
        self._given_up: dict[str, Future[Any]] = {}
        self._late: frozenset[str] = frozenset()
        self._lock = threading.Lock()

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is under way."""
        return not self._under_way

    def ask(
        self, groups: Collection[str], send: Callable[[str, float], Future[Any]], until: float
    ) -> Callable[[Read[Answer]], dict[str, Answer]]:
        """Ask for the first groups now; for the others while the result is called, which collects the answers.

        Args:
            groups: whom to ask for. Those who were late are the first, so that a short time is shared by all.
            send: sends a request that the library gives up after so many seconds.
            until: by `time.monotonic()`; nothing is sent later.

        Returns:
            Collects what it is given to read: a future that may not be done, or None for what was not asked.
        """
        patience = max(PATIENCE, 2 * (until - time.monotonic()))
        given_up = self._note({})
        free = [group for group in groups if group not in given_up]
        waiting = deque(sorted(free, key=lambda group: group not in self._late))
        asked: deque[tuple[str, Future[Any]]] = deque()

        def send_more() -> None:
            while waiting and len(asked) < AT_ONCE and time.monotonic() < until:
                group = waiting.popleft()
                future = send(group, patience)
                self._under_way.add(future)
                future.add_done_callback(self._under_way.discard)
                asked.append((group, future))

        def collect(read: Read[Answer]) -> dict[str, Answer]:
            found: dict[str, Answer] = {}
            mine: dict[str, Future[Any]] = {}
            while asked:
                group, future = asked.popleft()
                mine[group] = future
                found[group] = read(future)
                send_more()
            given_up = self._note(mine)
            self._late = frozenset(group for group in groups if group not in found or group in given_up)
            return {group: found[group] if group in found else read(None) for group in groups}

        send_more()
        return collect

    def _note(self, more: Mapping[str, Future[Any]]) -> frozenset[str]:
        """The groups whose requests are under way though nobody waits for them any more, these included."""
        with self._lock:
            self._given_up = {group: one for group, one in (self._given_up | dict(more)).items() if not one.done()}
            return frozenset(self._given_up)
