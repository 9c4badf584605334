"""What a look at its cluster says of a monitor: warnings, each with the way out. Plain functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lagscale.domain.policy.policy import MAX_LOOKBACK_MS, OffsetResetPolicy, Policy
from lagscale.kafka.probe.result import Findings, GroupFound, Holding
from lagscale.store.registry.monitor_spec import MonitorSpec
from services.api.schemas import WarningOut
from services.api.validation.schemas import TopicChecked, VerdictChecked, WindowChecked

_MOST_NAMED = 5


def topics_meant(spec: MonitorSpec, found: Findings) -> tuple[str, ...] | None:
    """The topics that the monitor means, as far as the look tells; None where it does not."""
    if spec.topics:
        return spec.topics
    if spec.pattern is not None:
        return None if found.listed is None else tuple(sorted(spec.scope.among(found.listed)))
    group = _group(spec, found)
    if group is None or group.commits is None:
        return None
    return tuple(sorted(spec.scope.among(group.commits)))


def topics_checked(spec: MonitorSpec, found: Findings, topics: Sequence[str]) -> list[TopicChecked]:
    """Each topic, with what could be told."""
    known = {topic.name: topic.partitions for topic in found.topics}
    group = _group(spec, found)
    commits = None if group is None else group.commits
    lag = {} if group is None else group.lag
    return [
        TopicChecked(
            name=name,
            partitions=known.get(name),
            committed_partitions=None if commits is None else commits.get(name, 0),
            lag=lag.get(name),
        )
        for name in topics
    ]


def warnings_of(spec: MonitorSpec, found: Findings, topics: Sequence[TopicChecked] | None) -> list[WarningOut]:
    """Everything that may keep the monitor from working."""
    pairs = [*_of_window(spec.policy)]
    if found.problem:
        text = f"The cluster could not be asked, so topics and group were not checked. {found.text}"
        pairs.append(("cluster", text))
    for right in found.rights:
        if right.holding is Holding.DENIED and right.kind != "cluster":
            pairs.append((_FIELDS[right.kind], f"{right.name}: {right.text} Grant it: {right.grant}"))
    if topics is not None and not found.problem:
        pairs += [*_of_topics(spec, topics), *_of_group(spec, found, topics)]
    return [WarningOut(field=field, text=text) for field, text in dict.fromkeys(pairs)]


_FIELDS = {"topic": "topics", "group": "consumerGroup"}


def _of_window(policy: Policy) -> Iterator[tuple[str, str]]:
    if 0 < policy.sustain_ms < policy.sampling_ms:
        text = (
            "is shorter than samplingInterval, so lag has lasted when two samples in a row are above the threshold; "
            "make samplingInterval smaller if that is too late"
        )
        yield "policy.sustainSeconds", text


def _of_topics(spec: MonitorSpec, topics: Sequence[TopicChecked]) -> Iterator[tuple[str, str]]:
    if not topics:
        which = "topicPattern" if spec.pattern is not None else "topics"
        text = (
            "no topic of the cluster matches it" if spec.pattern is not None else "the group has committed on no topic"
        )
        yield which, f"{text} at present, so there is nothing to measure; new ones are found as they come"
    for number, topic in enumerate(topics):
        if topic.partitions == 0:
            yield f"topics.{number}", f"there is no topic {topic.name} in the cluster; create it, or correct the name"
        elif topic.partitions is not None and not _limited(spec.policy, topic.partitions):
            text = f"names none of the {topic.partitions} partitions of {topic.name}, so there is nothing to measure"
            yield "policy.partitionLimitation", text


def _limited(policy: Policy, partitions: int) -> bool:
    """Whether a partition is left."""
    return not policy.partition_limitation or any(low < partitions for low, _ in policy.partition_limitation)


def _of_group(spec: MonitorSpec, found: Findings, topics: Sequence[TopicChecked]) -> Iterator[tuple[str, str]]:
    group = _group(spec, found)
    if group is None or group.commits is None:
        return
    # Topics that were found by the cluster's own list are there, though not each was described.
    there = [topic for topic in topics if topic.partitions or (topic.partitions is None and not spec.topics)]
    without = [topic.name for topic in there if not topic.committed_partitions]
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
        named = ", ".join(without[:_MOST_NAMED]) + (" and more" if len(without) > _MOST_NAMED else "")
        yield "consumerGroup", f"the group has not committed on {named}; {counts}"


def _group(spec: MonitorSpec, found: Findings) -> GroupFound | None:
    return next((group for group in found.groups if group.name == spec.consumer_group), None)


def window_of(policy: Policy) -> WindowChecked:
    """What the policy looks back on."""
    known = max(policy.sustain_ms, policy.activation_sustain_ms, policy.work_ms) + 2 * policy.sampling_ms
    return WindowChecked(
        sustain_seconds=policy.sustain_ms / 1000,
        sampling_interval=policy.sampling_ms / 1000,
        samples=-(-policy.sustain_ms // policy.sampling_ms) + 1,
        lookback_seconds=policy.lookback_ms / 1000,
        most_lookback_seconds=MAX_LOOKBACK_MS / 1000,
        known_within_seconds=known / 1000,
    )


def _waiting(policy: Policy, topic: TopicChecked) -> int | None:
    if topic.lag is None and topic.committed_partitions == 0 and topic.partitions != 0:
        return 0 if policy.offset_reset_policy is OffsetResetPolicy.LATEST else None
    return topic.lag


def not_measured(policy: Policy, topics: Sequence[TopicChecked] | None) -> VerdictChecked:
    """The verdict where nothing is measured yet: unknown, whatever one look saw."""
    waiting = [_waiting(policy, topic) for topic in topics or ()]
    known = [lag for lag in waiting if lag is not None]
    # A sum over a part would be told too low.
    lag = sum(known) if known and len(known) == len(waiting) else None
    told = "the lag at present could not be told" if lag is None else f"{lag:,} messages wait at present"
    within = window_of(policy).known_within_seconds
    text = f"Nothing is measured yet, so the verdict is unknown, for {within:g} s at most; {told}."
    return VerdictChecked(verdict="unknown", sentence=text, measured=False, lag=lag)
