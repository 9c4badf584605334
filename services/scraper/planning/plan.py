"""What one tick polls: slots of clusters, clusters of groups. The planner builds it, workers poll it."""

from __future__ import annotations

from dataclasses import dataclass

from lagscale.store.scraping.targets import ClusterEntry, TargetEntry


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One group of a round, and its topics that are measured.

    `interval_ms` is the real polling interval; with `describe` members and state are read in this round; a `large` group
    is polled out of band, so it may have any number of partitions.
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
