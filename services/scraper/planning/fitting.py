"""Which targets of a poll may be measured now, when their topics' sizes are known. Pure; the poll calls it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lagscale.domain.quotas import Quota, describe_excess
from lagscale.store.scraping.targets import TargetEntry
from services.scraper.kafka.status import PollCode, PollProblem
from services.scraper.planning.planner import LARGE_PARTITIONS, GroupPlan
from services.scraper.polling.round import TopicDescription


def filter_by_quota(
    groups: Sequence[GroupPlan], topics: Mapping[str, TopicDescription | PollProblem]
) -> tuple[list[GroupPlan], list[tuple[TargetEntry, PollProblem]]]:
    """The groups with the targets that are measured now, and the others with the reason.

    Sizes known before were planned with; this is where new topics, and those that grew, show theirs.
    """
    measured: list[GroupPlan] = []
    rejected: list[tuple[TargetEntry, PollProblem]] = []
    for group in groups:
        problems = {target.target_id: _find_problem(target, group, topics) for target in group.targets}
        rejected += [(one, problem) for one in group.targets if (problem := problems[one.target_id]) is not None]
        left = tuple(one for one in group.targets if problems[one.target_id] is None)
        if left:
            measured.append(group if len(left) == len(group.targets) else replace(group, targets=left))
    return measured, rejected


def _find_problem(
    target: TargetEntry, group: GroupPlan, topics: Mapping[str, TopicDescription | PollProblem]
) -> PollProblem | None:
    topic = topics.get(target.topic)
    if not isinstance(topic, TopicDescription):
        return None
    count = len(topic.partitions)
    if target.left is not None and target.quota is not None and count > target.left:
        size = f"a topic of {count} partitions, where {max(target.left, 0)} are left"
        return PollProblem(PollCode.OVER_QUOTA, text=describe_excess(Quota.PARTITIONS, target.quota, size))
    if count > LARGE_PARTITIONS and not group.large:
        return PollProblem(PollCode.LARGE, f"{count} partitions")
    return None
