"""What one tick polls: slots of clusters, clusters of groups. The planner builds it, workers poll it."""

from __future__ import annotations

from dataclasses import dataclass

from lagscale.store.scraping.targets import ClusterEntry, TargetEntry


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One group of a round.

    Attributes:
        name: the consumer group.
        targets: its topics that are measured.
        interval_ms: the real polling interval.
        describe: whether members and state are read in this round.
        large: polled out of band, so it may have any number of partitions.
    """

    name: str
    targets: tuple[TargetEntry, ...]
    interval_ms: int
    describe: bool
    large: bool = False


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """The groups of a cluster that one slot polls. `responsive`: the cluster answered its last poll."""

    cluster: ClusterEntry
    groups: tuple[GroupPlan, ...]
    responsive: bool = True


@dataclass(frozen=True, slots=True)
class Slot:
    """What one task polls, and the time limit of all its requests in seconds."""

    clusters: tuple[ClusterPlan, ...]
    seconds: float
