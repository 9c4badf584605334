"""Time lag: how long the oldest unread message has waited, from stored end offsets alone; nothing is consumed.

A round is stamped when its first request is sent, and its ends are queried later: in between, messages may arrive that
its end already counts. So each end carries the times of request and response, and each bound uses the one that keeps
it true. Part of the reference of the verdict; SQL computes the same numbers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lagscale.domain.lag.rounds import TargetRound


@dataclass(frozen=True, slots=True)
class EndRead:
    """One stored end offset of a partition. Times are milliseconds.

    Attributes:
        at_ms: the round's stamp.
        end: the end offset, read at some time between the two following ones.
        asked_ms: the broker read it so long after the stamp at the earliest.
        answered_ms: the broker read it so long after the stamp at the latest.
        incarnation: counts the topic's ids.
    """

    at_ms: int
    end: int
    asked_ms: int = 0
    answered_ms: int = 0
    incarnation: int = 0


@dataclass(frozen=True, slots=True)
class TimeLag:
    """How long the first unread message had waited at a round's stamp; whole milliseconds.

    Attributes:
        lower_ms: it waited at least so long.
        estimate_ms: the likely time; the lower bound where there is no upper one.
        upper_ms: it waited at most so long; None when it is older than the stored ends ("at least").
    """

    lower_ms: int
    estimate_ms: int
    upper_ms: int | None


#: The group has read everything.
NO_WAIT = TimeLag(0, 0, 0)


def collect_ends(rounds: Iterable[TargetRound], partition: int) -> list[EndRead]:
    """The ends of one partition of a target, from its rounds in time order; where it is missing there is none."""
    return [
        # Rows of earlier releases lack the times of request and response: their ends count as read at the stamp.
        EndRead(this.at_ms, sample.end, this.ends_asked_ms or 0, this.ends_answered_ms or 0, this.incarnation)
        for this in rounds
        if partition < len(this.samples) and (sample := this.samples[partition]) is not None
    ]


def select_comparable(ends: Sequence[EndRead]) -> Sequence[EndRead]:
    """The newest ends that never fall, all under the newest one's topic id.

    An offset of an earlier id, or of before a truncation, names another message.
    """
    first = len(ends) - 1
    while (
        first > 0 and ends[first - 1].incarnation == ends[first].incarnation and ends[first - 1].end <= ends[first].end
    ):
        first -= 1
    return ends[max(first, 0) :]


def compute_time_lag(ends: Sequence[EndRead], position: int) -> TimeLag | None:
    """The time lag of a position at the stamp of the newest end; None without any end.

    1. The position is the newest end: no lag.
    2. The first unread message arrived after the request of the last end that did not count it, and before the response
       of the first one that did: these are the bounds. A message that arrived after the stamp has waited for 0.
    3. Between the two ends the estimate takes messages as spread evenly, and each end as read in the middle of its
       request. It is rounded down to whole milliseconds, and lies within the bounds.
    4. Every comparable end counts it: it has waited at least since the response of the first of these.

    Args:
        ends: those of one partition, oldest first, up to the round to which the position belongs, without missing
            ones.
        position: the offset that the group reads next, at most the newest end.
    """
    if not ends:
        return None
    now_ms = ends[-1].at_ms
    if position >= ends[-1].end:
        return NO_WAIT
    comparable_ends = select_comparable(ends)
    after = bisect_right(comparable_ends, position, key=lambda read: read.end)
    newer = comparable_ends[after]
    lower = max(now_ms - newer.at_ms - newer.answered_ms, 0)
    if after == 0:
        return TimeLag(lower, lower, None)
    older = comparable_ends[after - 1]
    # A round that overlapped the next one may have queried its ends after the stamp: later messages have not waited.
    upper = max(now_ms - older.at_ms - older.asked_ms, lower)
    return TimeLag(lower, min(max(_estimate(now_ms, older, newer, position), lower), upper), upper)


def compute_time_lags(ends: Sequence[EndRead], positions: Sequence[int | None]) -> list[TimeLag]:
    """The time lag at each end, of the position of the same round; None is a partition without lag.

    Args:
        ends: those of one partition since it was first seen, oldest first.
        positions: one for each.
    """
    found = []
    for number, position in enumerate(positions):
        comparable_ends = None if position is None else compute_time_lag(ends[: number + 1], position)
        found.append(comparable_ends or NO_WAIT)
    return found


def _estimate(now_ms: int, older: EndRead, newer: EndRead, position: int) -> int:
    # Twice the ages at the stamp, so that the middle of a request is a whole number. Times since 1970 would overflow
    # 64 bits when they are multiplied by messages, and SQL has no wider integers.
    old = 2 * (now_ms - older.at_ms) - older.asked_ms - older.answered_ms
    new = 2 * (now_ms - newer.at_ms) - newer.asked_ms - newer.answered_ms
    messages = newer.end - older.end
    return (old * messages - (old - new) * (position - older.end)) // (2 * messages)
