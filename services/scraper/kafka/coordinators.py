"""Which groups share a coordinator: those whose commits are kept in the same partition of `__consumer_offsets`.

For `kafka.py`. Kafka hashes the group's name as Java hashes a string.
"""

from __future__ import annotations

from typing import Final

from services.scraper.kafka.status import PollCode, PollProblem
from services.scraper.polling.round import GroupDescription

OFFSETS_TOPIC: Final = "__consumer_offsets"
#: Its partitions unless a cluster was set up otherwise.
DEFAULT_OFFSETS_PARTITIONS: Final = 50
_MOVING: Final = frozenset({"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"})


def find_offsets_partition(group: str, partition_count: int = DEFAULT_OFFSETS_PARTITIONS) -> int:
    """The partition, of so many, that keeps the group's commits."""
    code = 0
    units = group.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8) + low) & 0xFFFFFFFF
    signed = code - 2**32 if code >= 2**31 else code
    # Java has no absolute value of its least number; Kafka takes 0.
    return 0 if signed == -(2**31) else abs(signed) % partition_count


def pick_group_per_partition(groups: list[str], partition_count: int = DEFAULT_OFFSETS_PARTITIONS) -> dict[int, str]:
    """One group for each partition that keeps commits of these groups."""
    found: dict[int, str] = {}
    for group in groups:
        found.setdefault(find_offsets_partition(group, partition_count), group)
    return found


def find_move_problem(found: GroupDescription | PollProblem) -> PollProblem | None:
    """Why the coordinator cannot be asked for commits now; None when it can, or at least says why not."""
    if isinstance(found, PollProblem) and (
        found.code in {PollCode.TIMEOUT, PollCode.UNREACHABLE} or found.detail in _MOVING
    ):
        return found
    return None
