"""What a look at its cluster says of a monitor: warnings, each with the way out. Plain functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lagscale.domain.policy.policy import MAX_LOOKBACK_MS, OffsetResetPolicy, Policy
from lagscale.kafka.probe.result import AccessStatus, GroupResult, ProbeResult
from lagscale.store.registry.monitor_spec import MonitorSpec
from services.api.schemas import WarningOut
from services.api.validation.schemas import CurrentVerdictOut, TopicCheckOut, WindowOut

_MAX_NAMED = 5


def resolve_topics(spec: MonitorSpec, result: ProbeResult) -> tuple[str, ...] | None:
    """The topics that the monitor means, as far as the look tells; None where it does not."""
    if spec.topics:
        return spec.topics
    if spec.pattern is not None:
        return None if result.topic_names is None else tuple(sorted(spec.scope.filter_names(result.topic_names)))
    group = _find_group(spec, result)
    if group is None or group.commits is None:
        return None
    return tuple(sorted(spec.scope.filter_names(group.commits)))


def check_topics(spec: MonitorSpec, result: ProbeResult, topics: Sequence[str]) -> list[TopicCheckOut]:
    """Each topic, with what could be told."""
    partition_counts = {topic.name: topic.partitions for topic in result.topics}
    group = _find_group(spec, result)
    commits = None if group is None else group.commits
    lag = {} if group is None else group.lag
    return [
        TopicCheckOut(
            name=name,
            partitions=partition_counts.get(name),
            committed_partitions=None if commits is None else commits.get(name, 0),
            lag=lag.get(name),
        )
        for name in topics
    ]


def find_monitor_warnings(
    spec: MonitorSpec, result: ProbeResult, topics: Sequence[TopicCheckOut] | None
) -> list[WarningOut]:
    """Everything that may keep the monitor from working."""
    pairs = [*_check_window(spec.policy)]
    if result.problem:
        text = f"The cluster could not be asked, so topics and group were not checked. {result.text}"
        pairs.append(("cluster", text))
    for permission in result.access_checks:
        if permission.status is AccessStatus.DENIED and permission.kind != "cluster":
            pairs.append(
                (_FIELDS[permission.kind], f"{permission.name}: {permission.text} Grant it: {permission.grant}")
            )
    if topics is not None and not result.problem:
        pairs += [*_check_topic_names(spec, topics), *_check_group(spec, result, topics)]
    return [WarningOut(field=field, text=text) for field, text in dict.fromkeys(pairs)]


_FIELDS = {"topic": "topics", "group": "consumerGroup"}


def _check_window(policy: Policy) -> Iterator[tuple[str, str]]:
    if 0 < policy.sustain_ms < policy.sampling_ms:
        text = (
            "is shorter than samplingInterval, so lag has lasted when two samples in a row are above the threshold; "
            "make samplingInterval smaller if that is too late"
        )
        yield "policy.sustainSeconds", text


def _check_topic_names(spec: MonitorSpec, topics: Sequence[TopicCheckOut]) -> Iterator[tuple[str, str]]:
    if not topics:
        which = "topicPattern" if spec.pattern is not None else "topics"
        text = (
            "no topic of the cluster matches it" if spec.pattern is not None else "the group has committed on no topic"
        )
        yield which, f"{text} at present, so there is nothing to measure; new ones are found as they come"
    for number, topic in enumerate(topics):
        if topic.partitions == 0:
            yield f"topics.{number}", f"there is no topic {topic.name} in the cluster; create it, or correct the name"
        elif topic.partitions is not None and not _has_partition_left(spec.policy, topic.partitions):
            text = f"names none of the {topic.partitions} partitions of {topic.name}, so there is nothing to measure"
            yield "policy.partitionLimitation", text


def _has_partition_left(policy: Policy, partitions: int) -> bool:
    """Whether a partition is left."""
    return not policy.partition_limitation or any(low < partitions for low, _ in policy.partition_limitation)


def _check_group(spec: MonitorSpec, result: ProbeResult, topics: Sequence[TopicCheckOut]) -> Iterator[tuple[str, str]]:
    group = _find_group(spec, result)
    if group is None or group.commits is None:
        return
    # Topics that were found by the cluster's own list are there, though not each was described.
    existing_topics = [topic for topic in topics if topic.partitions or (topic.partitions is None and not spec.topics)]
    without = [topic.name for topic in existing_topics if not topic.committed_partitions]
    if not without:
        return
    counts = (
        "with offsetResetPolicy latest that counts as no lag"
        if spec.policy.offset_reset_policy is OffsetResetPolicy.LATEST
        else "with offsetResetPolicy earliest everything in the log counts as lag"
    )
    nobody = not any(group.commits.values()) and not group.members
    if nobody:
        yield (
            "consumerGroup",
            f"the group has neither members nor commits; {counts}. Check its name, if it should exist",
        )
    else:
        topic_names = ", ".join(without[:_MAX_NAMED]) + (" and more" if len(without) > _MAX_NAMED else "")
        yield "consumerGroup", f"the group has not committed on {topic_names}; {counts}"


def _find_group(spec: MonitorSpec, result: ProbeResult) -> GroupResult | None:
    return next((group for group in result.groups if group.name == spec.consumer_group), None)


def build_window(policy: Policy) -> WindowOut:
    """What the policy looks back on."""
    partition_counts = max(policy.sustain_ms, policy.activation_sustain_ms, policy.work_ms) + 2 * policy.sampling_ms
    return WindowOut(
        sustain_seconds=policy.sustain_ms / 1000,
        sampling_interval=policy.sampling_ms / 1000,
        min_samples=-(-policy.sustain_ms // policy.sampling_ms) + 1,
        lookback_seconds=policy.lookback_ms / 1000,
        max_lookback_seconds=MAX_LOOKBACK_MS / 1000,
        first_verdict_within_seconds=partition_counts / 1000,
    )


def _count_waiting(policy: Policy, topic: TopicCheckOut) -> int | None:
    if topic.lag is None and topic.committed_partitions == 0 and topic.partitions != 0:
        return 0 if policy.offset_reset_policy is OffsetResetPolicy.LATEST else None
    return topic.lag


def build_unmeasured_verdict(policy: Policy, topics: Sequence[TopicCheckOut] | None) -> CurrentVerdictOut:
    """The verdict where nothing is measured yet: unknown, whatever one look saw."""
    waiting = [_count_waiting(policy, topic) for topic in topics or ()]
    partition_counts = [lag for lag in waiting if lag is not None]
    # A sum over a part would be told too low.
    lag = sum(partition_counts) if partition_counts and len(partition_counts) == len(waiting) else None
    counted = "the lag at present could not be told" if lag is None else f"{lag:,} messages wait at present"
    within = build_window(policy).first_verdict_within_seconds
    text = f"Nothing is measured yet, so the verdict is unknown, for {within:g} s at most; {counted}."
    return CurrentVerdictOut(verdict="unknown", sentence=text, measured=False, lag=lag)
