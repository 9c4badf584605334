"""Open transactions of a topic: what lies behind the last stable offset of a partition, and since when.

The scraper stores what it reads, `target_state.unstable`; a transaction has no time in what brokers answer to a monitor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

#: So many partitions of a topic are stored, those with the most messages.
MAX_STORED: Final = 100


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A partition whose last stable offset stands still below the high watermark.

    Attributes:
        messages: between the two; offsets of aborted messages and markers count too.
        since_ms: the first reading of this last stable offset; it may have been there before.
        read_ms: the newest one.
    """

    topic: str
    partition: int
    stable_offset: int
    messages: int
    since_ms: int
    read_ms: int


def build_unstable(highs: Mapping[int, int], stables: Mapping[int, int], at_ms: int) -> dict[str, Any]:
    """What to store of a round: the partitions whose last stable offset is below the high watermark."""
    behind = {n: high - stables[n] for n, high in highs.items() if 0 <= stables.get(n, -1) < high}
    most = sorted(behind, key=lambda number: (-behind[number], number))[:MAX_STORED]
    return {"at": at_ms, "partitions": {str(number): [stables[number], behind[number], at_ms] for number in most}}


def list_open_transactions(topic: str, unstable: Mapping[str, Any] | None) -> Iterator[OpenTransaction]:
    """Those of which two readings found the same last stable offset; one alone is any transaction under way."""
    if unstable is None:
        return
    for number, (stable, messages, since_ms) in unstable["partitions"].items():
        if since_ms < unstable["at"]:
            yield OpenTransaction(topic, int(number), stable, messages, since_ms, unstable["at"])
