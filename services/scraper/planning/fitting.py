"""Which targets of a poll may be measured now, when their topics' sizes are known. Pure; the poll calls it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lagscale.domain.quotas import Quota, over_quota
from lagscale.store.scraping.targets import TargetEntry
from services.scraper.kafka.status import Code, Problem
from services.scraper.planning.planner import LARGE_PARTITIONS, GroupPlan
from services.scraper.polling.round import TopicSeen


def fitting(
    groups: Sequence[GroupPlan], topics: Mapping[str, TopicSeen | Problem]
) -> tuple[list[GroupPlan], list[tuple[TargetEntry, Problem]]]:
    """The groups with the targets that are measured now, and the others with the reason.

    Sizes known before were planned with; this is where new topics, and those that grew, show theirs.
    """
    measured: list[GroupPlan] = []
    unfit: list[tuple[TargetEntry, Problem]] = []
    for group in groups:
        problems = {target.target_id: _problem(target, group, topics) for target in group.targets}
        unfit += [(one, problem) for one in group.targets if (problem := problems[one.target_id]) is not None]
        left = tuple(one for one in group.targets if problems[one.target_id] is None)
        if left:
            measured.append(group if len(left) == len(group.targets) else replace(group, targets=left))
    return measured, unfit


def _problem(target: TargetEntry, group: GroupPlan, topics: Mapping[str, TopicSeen | Problem]) -> Problem | None:
    topic = topics.get(target.topic)
    if not isinstance(topic, TopicSeen):
        return None
    count = len(topic.partitions)
    if target.left is not None and target.quota is not None and count > target.left:
        found = f"a topic of {count} partitions, where {max(target.left, 0)} are left"
        return Problem(Code.OVER_QUOTA, text=over_quota(Quota.PARTITIONS, target.quota, found))
    if count > LARGE_PARTITIONS and not group.large:
        return Problem(Code.LARGE, f"{count} partitions")
    return None
