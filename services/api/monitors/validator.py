"""Validation of a monitor: errors for which it would be refused, and findings on its cluster. Stores nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import structlog

from lagscale.domain.policy.policy import MAX_LOOKBACK_MS, IsolationLevel, OffsetResetPolicy, Policy
from lagscale.domain.topics import DEFAULT_MAX_TOPICS, MAX_TOPICS_SETTING
from lagscale.domain.verdict.contract import Reason, VerdictRequest
from lagscale.domain.wording.group_status import describe_unstable
from lagscale.domain.wording.numbers import format_count
from lagscale.domain.wording.verdicts import describe_verdict
from lagscale.errors import Conflict, FieldError, InvalidInput, LagscaleError, QuotaExceeded, SecretsUnreadable
from lagscale.kafka.probe.result import AccessStatus, GroupResult, ProbeResult
from lagscale.store.registry import clusters
from lagscale.store.registry.monitor_spec import MonitorSpec, build_spec
from lagscale.store.registry.monitor_writes import unknown_cluster
from lagscale.store.registry.session import Row
from services.api.clusters.preflight import Preflights
from services.api.deps import TenantAccess
from services.api.monitors.drafts import parse_draft
from services.api.monitors.schemas import (
    CurrentVerdictOut,
    GroupCheckOut,
    MonitorIn,
    TopicCheckOut,
    ValidationOut,
    WindowOut,
)
from services.api.schemas import FieldErrorOut, WarningOut
from services.api.verdicts.answers import VerdictStore

log = structlog.get_logger(__name__)

#: Reasons of a verdict without samples.
_NO_SAMPLES = {Reason.NO_DATA, Reason.NOTHING_TO_MEASURE}
_FIELDS = {"topic": "topics", "group": "consumerGroup"}
_MAX_NAMED = 5


class MonitorValidator:
    """Validates monitors before and at their registration."""

    def __init__(self, preflights: Preflights, verdicts: VerdictStore, tick_seconds: float) -> None:
        self._preflights = preflights
        self._verdicts = verdicts
        self._tick_seconds = tick_seconds

    async def find_warnings(self, tenant: TenantAccess, given: MonitorIn) -> list[WarningOut]:
        """Warnings for a monitor that was just registered; never raises, because the registration has succeeded."""
        try:
            return (await self.validate(tenant, given)).warnings
        except LagscaleError as error:
            log.warning("validation_failed", error=type(error).__name__)
            return []

    async def validate(self, tenant: TenantAccess, given: MonitorIn) -> ValidationOut:
        """What a registration of this monitor would result in. Each transaction is closed before Kafka is asked.

        Raises:
            NotFound: there is no such tenant for this caller.
            StoreUnavailable: the store did not answer.
        """
        field_errors: list[FieldError] = []
        spec: MonitorSpec | None = None
        async with tenant.session() as session:
            try:
                spec = build_spec(parse_draft(given.name or "unnamed", given), session.tenant, self._tick_seconds)
            except InvalidInput as error:
                field_errors += error.field_errors
            cluster = await clusters.find_by_name(session, given.cluster)
        if cluster is None:
            field_errors.append(unknown_cluster("cluster"))
        if spec is None or cluster is None:
            return ValidationOut(
                valid=False, errors=[FieldErrorOut(field=item.field, text=item.text) for item in field_errors]
            )
        if self._preflights.is_disabled:
            return ValidationOut(valid=True, window=_build_window(spec.policy))
        return await self._check_on_cluster(tenant, spec, cluster)

    async def _check_on_cluster(self, tenant: TenantAccess, spec: MonitorSpec, cluster: Row) -> ValidationOut:
        result, busy_message = await self._probe_cluster(tenant.name, spec, cluster)
        topic_names = _resolve_topics(spec, result)
        topics = None if topic_names is None else _check_topics(spec, result, topic_names)
        warnings = (
            [WarningOut(field="cluster", text=busy_message)] if busy_message else _find_warnings(spec, result, topics)
        )
        group = _find_group(spec, result)
        return ValidationOut(
            valid=True,
            warnings=warnings,
            topics=topics or [],
            group=None
            if group is None
            else GroupCheckOut(name=group.name, group_type=group.kind, members=group.members),
            window=_build_window(spec.policy),
            current_verdict=await self._build_current_verdict(tenant, spec, cluster, topics),
        )

    async def _probe_cluster(self, tenant: str, spec: MonitorSpec, cluster: Row) -> tuple[ProbeResult, str]:
        """The result of the probe, and why it was skipped; empty if it was not."""
        try:
            result = await self._preflights.run(
                tenant,
                cluster,
                groups={spec.consumer_group: spec.topics},
                read_committed=spec.policy.isolation_level is IsolationLevel.READ_COMMITTED,
                each_address=False,
                with_topic_names=spec.scope.pattern is not None,
                wait_for_slot=True,
            )
        except (Conflict, QuotaExceeded, SecretsUnreadable) as busy:
            return ProbeResult(problem="busy"), f"Topics and group were not checked. {busy.message}"
        return result, ""

    async def _build_current_verdict(
        self, tenant: TenantAccess, spec: MonitorSpec, cluster: Row, topics: list[TopicCheckOut] | None
    ) -> CurrentVerdictOut:
        """The verdict by stored samples, if all of the monitor's topics are measured already."""
        names = [topic.name for topic in topics or ()]
        async with tenant.session() as session:
            targets = await clusters.find_measured_targets(
                session,
                int(cluster["id"]),
                spec.consumer_group,
                topics=names,
                isolation=spec.policy.isolation_level.value,
                limitation=spec.limitation,
            )
        unmeasured = _build_unmeasured_verdict(spec.policy, topics)
        if not names or set(targets.values()) != set(names):
            return unmeasured
        request = VerdictRequest(int(cluster["tenant_id"]), tuple(sorted(targets)), spec.policy)
        judgment = (await self._verdicts.judge([request], evidence=True))[0]
        if judgment.reason in _NO_SAMPLES:
            return unmeasured
        return CurrentVerdictOut(
            verdict=judgment.verdict.value,
            sentence=describe_verdict(judgment, spec.policy, targets),
            value=judgment.value,
            from_samples=True,
            lag=unmeasured.lag,
        )


def _resolve_topics(spec: MonitorSpec, result: ProbeResult) -> tuple[str, ...] | None:
    """The topics of the monitor by the probe; None if the probe could not find them."""
    if spec.topics:
        return spec.topics
    if spec.scope.pattern is not None:
        return None if result.topic_names is None else tuple(sorted(spec.scope.filter_names(result.topic_names)))
    group = _find_group(spec, result)
    if group is None or group.commits is None:
        return None
    return tuple(sorted(spec.scope.filter_names(group.commits)))


def _check_topics(spec: MonitorSpec, result: ProbeResult, topics: Sequence[str]) -> list[TopicCheckOut]:
    """Each topic, with the findings of the probe."""
    partition_counts = {topic.name: topic.partitions for topic in result.topics}
    group = _find_group(spec, result)
    commits = None if group is None else group.commits
    lags = {} if group is None else group.lags
    return [
        TopicCheckOut(
            name=name,
            partitions=partition_counts.get(name),
            committed_partitions=None if commits is None else commits.get(name, 0),
            lag=lags[name].lag if name in lags else None,
            lost=lags[name].lost if name in lags else None,
            unstable=lags[name].unstable if name in lags else None,
        )
        for name in topics
    ]


def _find_warnings(spec: MonitorSpec, result: ProbeResult, topics: Sequence[TopicCheckOut] | None) -> list[WarningOut]:
    """Problems that may keep the monitor from working, with their remediation."""
    pairs = [*_check_window(spec.policy)]
    if result.problem:
        text = f"The cluster could not be probed, so topics and group were not checked. {result.text}"
        pairs.append(("cluster", text))
    for permission in result.access_checks:
        if permission.status is AccessStatus.DENIED and permission.kind != "cluster":
            pairs.append(
                (_FIELDS[permission.kind], f"{permission.name}: {permission.text} To grant it: {permission.grant}")
            )
    if topics is not None and not result.problem:
        pairs += [*_check_topic_names(spec, topics), *_check_group(spec, result, topics), *_check_lag(spec, result)]
    return [WarningOut(field=field, text=text) for field, text in dict.fromkeys(pairs)]


def _check_window(policy: Policy) -> Iterator[tuple[str, str]]:
    if 0 < policy.sustain_ms < policy.sampling_ms:
        text = (
            "is shorter than samplingInterval, so lag is sustained once two consecutive samples are above the threshold; "
            "reduce samplingInterval if that is too late"
        )
        yield "policy.sustainSeconds", text


def _check_topic_names(spec: MonitorSpec, topics: Sequence[TopicCheckOut]) -> Iterator[tuple[str, str]]:
    if not spec.scope.is_listed and len(topics) > DEFAULT_MAX_TOPICS:
        text = (
            f"{len(topics)} topics match, and the scraper measures at most {DEFAULT_MAX_TOPICS} per monitor by default; beyond "
            f"that, topics are not measured and the verdict is never calm. Raise {MAX_TOPICS_SETTING} of the scraper, set "
            "excludeTopics, or create several monitors"
        )
        yield "topics" if spec.scope.pattern is None else "topicPattern", text
    if not topics:
        which = "topicPattern" if spec.scope.pattern is not None else "topics"
        text = (
            "no topic of the cluster matches it"
            if spec.scope.pattern is not None
            else "the group has committed on no topic"
        )
        yield which, f"{text} at present, so nothing is measured; new topics are discovered as they appear"
    for number, topic in enumerate(topics):
        if topic.partitions == 0:
            yield (
                f"topics.{number}",
                f"topic {topic.name} does not exist in the cluster; create it, or correct the name",
            )
        elif topic.partitions is not None and not _has_partition_left(spec.policy, topic.partitions):
            text = f"contains none of the {topic.partitions} partitions of {topic.name}, so nothing is measured"
            yield "policy.partitionLimitation", text


def _has_partition_left(policy: Policy, partitions: int) -> bool:
    """Whether the policy includes a partition of the topic."""
    return not policy.partition_limitation or any(low < partitions for low, _ in policy.partition_limitation)


def _check_group(spec: MonitorSpec, result: ProbeResult, topics: Sequence[TopicCheckOut]) -> Iterator[tuple[str, str]]:
    group = _find_group(spec, result)
    if group is None or group.commits is None:
        return
    # Topics from the cluster's own list exist, though not each of them was described.
    existing_topics = [topic for topic in topics if topic.partitions or (topic.partitions is None and not spec.topics)]
    without = [topic.name for topic in existing_topics if not topic.committed_partitions]
    if not without:
        return
    counts = (
        "with offsetResetPolicy latest that counts as no lag: messages written before the first commit are never counted, "
        "and until then they only keep the group active (unless scaleToZeroOnInvalidOffset). If its consumers start with "
        "the oldest message (auto.offset.reset=earliest), set offsetResetPolicy to earliest"
        if spec.policy.offset_reset_policy is OffsetResetPolicy.LATEST
        else "with offsetResetPolicy earliest everything in the log counts as lag"
    )
    nobody = not any(group.commits.values()) and not group.members
    if nobody:
        yield (
            "consumerGroup",
            f"the group has neither members nor commits; {counts}. If it should exist, check its name",
        )
    else:
        topic_names = ", ".join(without[:_MAX_NAMED]) + (" and more" if len(without) > _MAX_NAMED else "")
        yield "consumerGroup", f"the group has not committed on {topic_names}; {counts}"


def _check_lag(spec: MonitorSpec, result: ProbeResult) -> Iterator[tuple[str, str]]:
    group = _find_group(spec, result)
    if group is None:
        return
    for topic, offset in group.invalid.items():
        text = "is negative, or greater than that of any topic, so the topic cannot be measured"
        yield "topics", f"{topic}, {offset} {text}; check the brokers, and the group's commits"
    for topic, lag in group.lags.items():
        if lag.lost:
            yield "consumerGroup", f"{lag.lost:,} messages of {topic} were lost to retention before the group read them"
        if lag.unstable:
            yield "topics", describe_unstable(topic, lag.unstable, spec.policy.isolation_level)


def _find_group(spec: MonitorSpec, result: ProbeResult) -> GroupResult | None:
    return next((group for group in result.groups if group.name == spec.consumer_group), None)


def _build_window(policy: Policy) -> WindowOut:
    """How far back a policy reads samples."""
    first_verdict_ms = max(policy.sustain_ms, policy.activation_sustain_ms, policy.work_ms) + 2 * policy.sampling_ms
    return WindowOut(
        sustain_seconds=policy.sustain_ms / 1000,
        sampling_interval=policy.sampling_ms / 1000,
        min_samples=-(-policy.sustain_ms // policy.sampling_ms) + 1,
        lookback_seconds=policy.answer_lookback_ms / 1000,
        max_lookback_seconds=MAX_LOOKBACK_MS / 1000,
        first_verdict_within_seconds=first_verdict_ms / 1000,
    )


def _count_waiting(policy: Policy, topic: TopicCheckOut) -> int | None:
    if topic.lag is None and topic.committed_partitions == 0 and topic.partitions != 0:
        return 0 if policy.offset_reset_policy is OffsetResetPolicy.LATEST else None
    return topic.lag


def _build_unmeasured_verdict(policy: Policy, topics: Sequence[TopicCheckOut] | None) -> CurrentVerdictOut:
    """The verdict before anything is measured: unknown, whatever the current lag is."""
    waiting = [_count_waiting(policy, topic) for topic in topics or ()]
    lags = [lag for lag in waiting if lag is not None]
    # A sum of some topics only would be too low.
    lag = sum(lags) if lags and len(lags) == len(waiting) else None
    current = "the current lag is unknown" if lag is None else f"the current lag is {format_count(lag, 'message')}"
    within = _build_window(policy).first_verdict_within_seconds
    text = f"Nothing is measured yet, so the verdict is unknown for at most {within:g} s; {current}."
    return CurrentVerdictOut(verdict="unknown", sentence=text, from_samples=False, lag=lag)
