"""From offsets to lag: one partition's sample, by the numbered rules of docs/persistence.md.

The scraper's rounds call it; the partition's last sample is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag


class Flag(IntFlag):
    """Facts of a sample besides its lag; stored as smallint."""

    UNCOMMITTED = 1  # no commit counts: `lag` is end - start, which `latest` reads as 0
    LOST = 2  # the commit lies below the log start: messages were lost to retention
    RESET = 4  # the commit lies beyond the end of a topic that was created again or truncated
    REWIND = 8  # the commit moved backwards
    FIRST_SEEN = 16  # the first sample of a partition that the previous metadata answer did not name
    EXCLUDED = 32  # the partition exists but `partitionLimitation` excludes it
    RESET_BEGINS = 64  # the first sample with RESET
    RECREATED = 128  # of a carried sample: it belongs to an earlier incarnation of the topic


#: Flags of samples whose position is no evidence of progress.
WITHOUT_PROGRESS = Flag.UNCOMMITTED | Flag.LOST | Flag.RESET


@dataclass(frozen=True, slots=True)
class Offsets:
    """One partition's offsets from the broker in one round; all are message offsets.

    `end` is the high watermark, or the last stable offset under `read_committed`; `high` is always the high
    watermark. `committed` is None when the group has no commit there.
    """

    start: int
    end: int
    committed: int | None
    high: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One partition of one round. Position = end - lag."""

    lag: int
    end: int
    flags: Flag = Flag(0)
    lost: int = 0

    @property
    def position(self) -> int:
        """Where the group reads next; the log start for an uncommitted partition."""
        return self.end - self.lag


def build_sample(
    offsets: Offsets,
    last: Sample | None,
    *,
    same_id: bool = True,
    first_seen: bool = False,
    was_recreated: bool = False,
) -> Sample:
    """One partition's sample from its offsets and its last sample.

    Args:
        offsets: this round's answer.
        last: the partition's newest earlier sample, if there is one.
        same_id: whether the topic's id is the one under which `last` was taken.
        first_seen: whether the metadata answer before this round did not name the partition.
        was_recreated: whether the topic had another id at any time before.
    """
    flags = Flag.FIRST_SEEN if first_seen else Flag(0)
    committed = offsets.committed
    end = max(offsets.end, offsets.start)
    if committed is not None and committed > offsets.high and last is not None:
        was_reset = bool(last.flags & Flag.RESET)
        # The broker deletes commits with the topic; an old one that arrives later is as stale as one that stayed.
        is_stale = was_recreated and bool(last.flags & Flag.UNCOMMITTED)
        if was_reset or is_stale or not same_id or end < last.end:
            flags |= Flag.RESET if was_reset else Flag.RESET | Flag.RESET_BEGINS
            committed = None
    if committed is None:
        return Sample(end - offsets.start, end, flags | Flag.UNCOMMITTED)
    lost = max(offsets.start - committed, 0)
    if lost:
        flags |= Flag.LOST
    position = min(max(committed, offsets.start), end)
    if _moved_backwards(position, last, same_id):
        flags |= Flag.REWIND
    return Sample(end - position, end, flags, lost)


def _moved_backwards(position: int, last: Sample | None, same_id: bool) -> bool:
    # A clamped position only falls when the commit does: ends of one incarnation do not shrink without a reset.
    return last is not None and same_id and not last.flags & Flag.UNCOMMITTED and position < last.position
