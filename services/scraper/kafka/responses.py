"""What the Kafka client answers, read into the words of rounds. `kafka.py` calls it; it knows no client itself."""

from __future__ import annotations

from typing import Any

from services.scraper.polling.round import Committed, GroupDescription, Partition, TopicDescription

_GROUP_STATES = {"UNKNOWN": 0, "PREPARING_REBALANCING": 1, "COMPLETING_REBALANCING": 2, "STABLE": 3, "DEAD": 4,
                 "EMPTY": 5}  # fmt: skip


def topic(described: Any) -> TopicDescription:
    """A described topic."""
    return TopicDescription(
        str(described.topic_id),
        {part.id: part.leader is not None and part.leader.id >= 0 for part in described.partitions},
    )


def committed(answer: Any) -> Committed:
    """A group's commits."""
    found: dict[Partition, int | None] = {}
    for part in answer.topic_partitions:
        # A partition with an error is left out, so it is missing; one without a commit is known to have none.
        if part.error is None:
            found[(part.topic, part.partition)] = part.offset if part.offset >= 0 else None
    return found


def listed(listing: Any) -> set[str]:
    """The names of listed groups."""
    return {one.group_id for one in listing.valid}


def group(described: Any) -> GroupDescription:
    """A described group."""
    return GroupDescription(len(described.members), _GROUP_STATES.get(described.state.name, 0))
