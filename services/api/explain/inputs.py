"""Stored facts of a monitor at a point in time: registration, samples and decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lagscale.clock import to_datetime, to_ms
from lagscale.domain.explain.decision_diff import (
    MAX_CALL_INTERVAL_MS,
    REPEAT_INTERVAL_MS,
    RecordedDecision,
    select_current,
)
from lagscale.domain.lag.rounds import SampleRow, TargetRound
from lagscale.domain.policy.policy import OffsetResetPolicy, Policy
from lagscale.errors import FieldError, InvalidInput
from lagscale.store.registry import history, monitors
from lagscale.store.registry.history import LagStep, PolicyVersion, TargetLink
from lagscale.store.registry.session import Row, TenantSession
from services.api.group_status.transactions import serialize_open_transactions
from services.api.monitors.drafts import read_policy
from services.api.schemas import format_time

#: Samples of partitions that are read to list every island; above it only the verdict's own is listed.
_MAX_SAMPLES = 60_000
_MAX_DECISIONS = 200
_SERIES_STEPS = 240
_MAX_TRANSACTIONS = 10


@dataclass(frozen=True, slots=True)
class ExplanationInput:
    """Everything that is stored of a point in time.

    Attributes:
        monitor: its row, also if it was deleted since.
        versions: of its policy, the oldest first; `version` is the one in force then, `until` the start of the next.
        samples_since_ms: all samples from here on are retained; None if none was dropped.
        partial: since when only a part of the topics is measured, and why; None if all are.
        rows: newest round of each target.
        rounds: those that the verdict reads; None if they are too many.
        lag_series: lag over the lookback of the answer.
        current_decisions: of each replica the decision in force then; without any, `previous_decision` is the newest one.
        decisions: of the time of `lag_series`, the newest first.
        deleted_since: when a monitor that was restored later had been deleted; None if it was not deleted then.
        open_transactions: sentences of those at present; none are retained.
    """

    at_ms: int
    now_ms: int
    monitor: Row
    minimum_interval: int
    versions: Sequence[PolicyVersion]
    version: PolicyVersion
    until: datetime | None
    policy: Policy
    links: Sequence[TargetLink]
    topics: Mapping[int, str]
    samples_since_ms: int | None
    partial: tuple[datetime, str] | None
    rows: Mapping[int, SampleRow]
    rounds: Mapping[int, Sequence[TargetRound]] | None
    lag_series: Sequence[LagStep]
    current_decisions: Sequence[RecordedDecision]
    previous_decision: RecordedDecision | None
    decisions: Sequence[RecordedDecision]
    deleted_since: datetime | None = None
    open_transactions: Sequence[str] = ()

    @property
    def has_samples(self) -> bool:
        """Whether the samples of that time are still retained."""
        return self.samples_since_ms is None or self.at_ms >= self.samples_since_ms

    def find_partial_reason(self, at_ms: int) -> str:
        """Why only a part of the topics was measured at that time; empty if all were."""
        return self.partial[1] if self.partial is not None and to_ms(self.partial[0]) <= at_ms else ""

    def find_topics_at(self, at_ms: int) -> dict[int, str]:
        """Target id -> topic at another time."""
        return history.find_linked_topics(self.links, _clamp_to_lifetime(self.monitor, at_ms))

    def find_replica_version(self, record: RecordedDecision) -> PolicyVersion:
        """The version of the policy that a replica answered by."""
        known_versions = [one for one in self.versions if record.version is not None and one.version <= record.version]
        return known_versions[-1] if known_versions else _find_version_at(self.versions, record.decided_ms)

    def read_version_policy(self, version: PolicyVersion, overrides: Mapping[str, str] | None = None) -> Policy:
        """The policy of a version, with the overrides of a ScaledObject."""
        return read_policy({**version.given, **(overrides or {})}, self.minimum_interval)


async def load_explanation_input(session: TenantSession, name: str, at_ms: int | None) -> ExplanationInput:
    """Read the facts of a time, milliseconds since 1970; None is now.

    Raises:
        NotFound: the tenant has and had no monitor of this name.
        InvalidInput: the time is in the future, before the monitor was registered, or nothing of it is retained.
    """
    registrations = await history.read_monitors_by_name(session, name)
    now_ms = to_ms(await history.read_clock(session))
    is_present, at_ms = at_ms is None, now_ms if at_ms is None else at_ms
    monitor = _find_registration(registrations, at_ms, now_ms)
    minimum = int(session.tenant["min_sampling_seconds"])
    versions = await history.read_policy_versions(session, monitor["id"])
    alive_ms = _clamp_to_lifetime(monitor, at_ms)
    version = _find_version_at(versions, alive_ms)
    policy = read_policy(version.given, minimum)
    links = await history.read_target_links(session, monitor["id"])
    topics = history.find_linked_topics(links, alive_ms)
    samples_since = await history.read_samples_since(session)
    at, since = to_datetime(at_ms), to_datetime(at_ms - policy.answer_lookback_ms)
    window = to_datetime(at_ms - REPEAT_INTERVAL_MS - MAX_CALL_INTERVAL_MS)
    current_decisions = select_current(await history.read_newest_decisions(session, monitor["id"], at, window), at_ms)
    older = [] if current_decisions else await history.read_decisions(session, monitor["id"], to_datetime(0), at, 1)
    targets = sorted(topics)
    rows = await history.read_newest_rows(session, targets, at)
    return ExplanationInput(
        at_ms=at_ms,
        now_ms=now_ms,
        monitor=monitor,
        minimum_interval=minimum,
        versions=versions,
        version=version,
        until=min((one.valid_from for one in versions if one.version > version.version), default=None),
        policy=policy,
        links=links,
        topics=topics,
        samples_since_ms=None if samples_since is None else to_ms(samples_since),
        partial=await history.find_partial_since(session, monitor["id"]),
        rows=rows,
        rounds=await _load_rounds(session, rows, topics, policy, at),
        lag_series=await history.read_lag_series(
            session, targets, since, at, steps=_SERIES_STEPS,
            earliest=policy.offset_reset_policy is OffsetResetPolicy.EARLIEST,
        ),
        current_decisions=current_decisions,
        previous_decision=older[0] if older else None,
        decisions=await history.read_decisions(session, monitor["id"], since, at, _MAX_DECISIONS),
        deleted_since=await history.find_deleted_since(session, monitor, at),
        open_transactions=await _describe_transactions(session, monitor, policy) if is_present else (),
    )  # fmt: skip


async def _describe_transactions(session: TenantSession, monitor: Row, policy: Policy) -> list[str]:
    targets = await monitors.read_targets(session, monitor["id"])
    return [one.sentence for one in serialize_open_transactions(targets, policy)[:_MAX_TRANSACTIONS]]


async def _load_rounds(
    session: TenantSession,
    rows: Mapping[int, SampleRow],
    topics: Mapping[int, str],
    policy: Policy,
    at: datetime,
) -> dict[int, list[TargetRound]] | None:
    """The rounds that the verdict reads, back from the newest one."""
    if not rows:
        return {target: [] for target in topics}
    newest_ms = max(row.round.at_ms for row in rows.values())
    partitions = max(len(row.round.samples) for row in rows.values())
    since = to_datetime(newest_ms - policy.lookback_ms)
    return await history.read_rounds(session, sorted(topics), since, at, _MAX_SAMPLES // max(partitions, 1))


def _find_registration(registrations: Sequence[Row], at_ms: int, now_ms: int) -> Row:
    """The monitor of that time: the last one registered under the name until then."""
    if at_ms > now_ms:
        raise _build_fault(f"is in the future; the database's clock is at {format_time(now_ms)}")
    oldest_ms = now_ms - history.DECISION_RETENTION // timedelta(milliseconds=1)
    if at_ms < oldest_ms:
        raise _build_fault(
            f"is {format_time(at_ms)}, which is beyond the retention of decisions ({history.DECISION_RETENTION.days} days); "
            f"give milliseconds since 1970, or a time from {format_time(oldest_ms)} on"
        )
    for row in registrations:
        if to_ms(row["created_at"]) <= at_ms:
            return row
    registered_time = format_time(to_ms(registrations[-1]["created_at"]))
    raise _build_fault(f"is before the monitor was registered; give {registered_time} or later")


def _clamp_to_lifetime(monitor: Row, at_ms: int) -> int:
    """The time, or the last one at which the monitor existed."""
    deleted = monitor["deleted_at"]
    return at_ms if deleted is None else min(at_ms, to_ms(deleted) - 1)


def _find_version_at(versions: Sequence[PolicyVersion], at_ms: int) -> PolicyVersion:
    valid = [one for one in versions if to_ms(one.valid_from) <= at_ms]
    return valid[-1] if valid else versions[0]


def _build_fault(text: str) -> InvalidInput:
    return InvalidInput([FieldError("at", text)])
