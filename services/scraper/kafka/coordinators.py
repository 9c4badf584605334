"""Group coordinators: which groups share one, and requests to them, for `cluster.py`.

librdkafka up to 2.16 aborts its process when a request reaches its own time limit while its coordinator is looked up,
and the lookup is answered later (confluentinc/librdkafka#5397). Thousands of groups requested at once make a healthy
broker that late. So the library gets far more time than the caller, who goes on without an answer; an abandoned request
is not repeated before it has ended; and no more requests are under way than a broker answers soon.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from confluent_kafka import OFFSET_INVALID

from lagscale.domain.state_codes import StateCode
from services.scraper import deadlines
from services.scraper.polling.round import Committed, GroupDescription, PollProblem

OFFSETS_TOPIC: Final = "__consumer_offsets"
_MOVING: Final = frozenset({"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"})
_GROUP_STATES: Final = {
    "UNKNOWN": 0, "PREPARING_REBALANCING": 1, "COMPLETING_REBALANCING": 2, "STABLE": 3, "DEAD": 4, "EMPTY": 5,
}  # fmt: skip

Reply = TypeVar("Reply")
Read = Callable[["Future[Any] | None"], Reply]


def find_offsets_partition(group: str, partition_count: int) -> int:
    """The partition of `__consumer_offsets` that stores the group's commits; its leader is the group's coordinator.

    Kafka hashes the name as Java hashes a string.
    """
    code = 0
    units = group.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8) + low) & 0xFFFFFFFF
    signed = code - 2**32 if code >= 2**31 else code
    # Java has no absolute value of its smallest number; Kafka takes 0.
    return 0 if signed == -(2**31) else abs(signed) % partition_count


def find_check_key(group: str, partition_count: int | None) -> int | str:
    """What groups with one coordinator have in common: their partition of that topic.

    Where its number of partitions is not known, as an ACL may hide the topic, it is the group itself.
    """
    return group if partition_count is None else find_offsets_partition(group, partition_count)


def find_move_problem(described: GroupDescription | PollProblem) -> PollProblem | None:
    """Why the coordinator cannot be asked for commits now; None when it answers, be it with another error."""
    if isinstance(described, PollProblem) and (
        described.code in {StateCode.TIMEOUT, StateCode.UNREACHABLE} or described.detail in _MOVING
    ):
        return described
    return None


class CoordinatorRequests:
    """Requests of one kind to the coordinators of one cluster, by group. Thread-safe."""

    def __init__(self) -> None:
        self._pending: set[Future[Any]] = set()
        self._abandoned: dict[str, Future[Any]] = {}
        self._late: frozenset[str] = frozenset()
        self._lock = threading.Lock()

    @property
    def is_quiet(self) -> bool:
        """Whether no request is under way."""
        return not self._pending

    def ask(
        self, groups: Collection[str], send: Callable[[str, float], Future[Any]], until: float
    ) -> Callable[[Read[Reply]], dict[str, Reply]]:
        """Send requests for the first groups; the others follow while the result is called, which collects the answers.

        Args:
            groups: names. Those that were late the last time are first, so that all get a share of a short time.
            send: sends a request with a time limit of its own, in seconds.
            until: by `time.monotonic()`; nothing is sent later.

        Returns:
            Collects the answers with a function that reads a future, which may not be done, or None where no request
            was sent.
        """
        timeout = max(deadlines.MIN_LIBRARY_TIMEOUT_SECONDS, 2 * (until - time.monotonic()))
        abandoned = self._update_abandoned({})
        free = [group for group in groups if group not in abandoned]
        waiting = deque(sorted(free, key=lambda group: group not in self._late))
        asked: deque[tuple[str, Future[Any]]] = deque()

        def send_more() -> None:
            while waiting and len(asked) < deadlines.MAX_PENDING_REQUESTS and time.monotonic() < until:
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
        """The groups whose requests are under way without a caller, `more` included."""
        with self._lock:
            self._abandoned = {group: one for group, one in (self._abandoned | dict(more)).items() if not one.done()}
            return frozenset(self._abandoned)


def read_commits(answer: Any) -> Committed:
    """A group's commits from the client's answer."""
    # A partition with an error is omitted, so it is missing; one without a commit is present with None.
    return {
        (part.topic, part.partition): None if part.offset == OFFSET_INVALID else part.offset
        for part in answer.topic_partitions
        if part.error is None
    }


def read_group(described: Any) -> GroupDescription:
    """A group's members and state from the client's answer."""
    return GroupDescription(len(described.members), _GROUP_STATES.get(described.state.name, 0))
