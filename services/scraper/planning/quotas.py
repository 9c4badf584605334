"""Fair shares among tenants: which targets fit into a quota of partitions, and round robin. Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TypeVar

from lagscale.domain.quotas import Quota, describe_excess
from lagscale.domain.state_codes import StateCode
from lagscale.store.scraping.targets import TargetEntry
from services.scraper import deadlines
from services.scraper.planning.plan import GroupPlan
from services.scraper.polling.round import PollProblem, TopicDescription

Item = TypeVar("Item")
Owner = TypeVar("Owner", bound=Hashable)


def interleave(items: Iterable[Item], owner: Callable[[Item], Owner]) -> list[Item]:
    """Round robin over the owners: one item of each, then the next of each.

    An owner's items keep their order, and the owner of the first item begins.
    """
    queues: dict[Owner, list[Item]] = {}
    for item in items:
        queues.setdefault(owner(item), []).append(item)
    missing = object()
    return [item for row in zip_longest(*queues.values(), fillvalue=missing) for item in row if item is not missing]  # type: ignore[misc]


def apply_quotas(targets: Iterable[TargetEntry], quotas: Mapping[int, int]) -> list[TargetEntry]:
    """The targets with `left` and `quota` set: what the tenant's older targets that fit leave of its quota.

    A target whose partitions were never counted takes nothing, so its first poll shows whether it fits. `quotas` are of
    partitions, by tenant; a tenant without an entry has no limit.
    """
    left = dict(quotas)
    limited: list[TargetEntry] = []
    for target in sorted(targets, key=lambda one: one.target_id):
        if target.tenant_id not in left:
            limited.append(target)
            continue
        room = left[target.tenant_id]
        limited.append(replace(target, left=room, quota=quotas[target.tenant_id]))
        if target.partitions is not None and target.partitions <= room:
            left[target.tenant_id] = room - target.partitions
    return limited


def filter_by_quota(
    groups: Sequence[GroupPlan], topics: Mapping[str, TopicDescription | PollProblem]
) -> tuple[list[GroupPlan], list[tuple[TargetEntry, PollProblem]]]:
    """The groups with the targets that are measured in this round, and the other targets with the reason.

    The plan used the sizes of earlier rounds; new topics, and those that grew, show their size here.
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
        size = f"the topic has {count} partitions, {max(target.left, 0)} are left"
        return PollProblem(StateCode.OVER_QUOTA, text=describe_excess(Quota.PARTITIONS, target.quota, size))
    if count > deadlines.LARGE_PARTITIONS and not group.large:
        return PollProblem(StateCode.LARGE, f"{count} partitions")
    return None
