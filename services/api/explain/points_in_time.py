"""A moment of a monitor, as it is remembered: registration, samples and decisions. Read for `explanations`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lagscale.domain.explain.decision_diff import ASKED_WITHIN_MS, TOLD_AGAIN_MS, Record, current
from lagscale.domain.lag import rounds as markers
from lagscale.domain.policy.policy import OffsetResetPolicy, Policy
from lagscale.errors import Fault, InvalidInput
from lagscale.store.registry import history
from lagscale.store.registry.history import Link, Step, Version, milliseconds
from lagscale.store.registry.session import Row, TenantWork
from lagscale.store.samples.columns import instant

#: Samples of single partitions that are read to list every island; beyond it only the verdict's own is shown.
_SAMPLES = 60_000
_DECISIONS = 200
_COURSE_STEPS = 240


@dataclass(frozen=True, slots=True)
class Moment:
    """Everything remembered of a moment.

    Attributes:
        monitor: its row, also where it was deleted since.
        versions: of its policy, the oldest first; `version` is the one of the moment, `until` when the next began.
        kept_ms: samples from here on are all kept; None when none was dropped.
        partial: since when only a part of the topics is measured, and why; None when all are.
        rows: of each target the newest round.
        rounds: those that the verdict looks at; None where they are too many.
        told: of each replica the record that speaks of the moment; `before` is the newest older one without any.
        decisions: of the time that `course` shows, the newest first.
        gone_since: when a monitor that was restored later had been deleted; None when it was there.
    """

    at_ms: int
    now_ms: int
    monitor: Row
    minimum_interval: int
    versions: Sequence[Version]
    version: Version
    until: datetime | None
    policy: Policy
    links: Sequence[Link]
    topics: Mapping[int, str]
    kept_ms: int | None
    partial: tuple[datetime, str] | None
    rows: Mapping[int, markers.Row]
    rounds: Mapping[int, Sequence[markers.TargetRound]] | None
    course: Sequence[Step]
    told: Sequence[Record]
    before: Record | None
    decisions: Sequence[Record]
    gone_since: datetime | None = None

    @property
    def has_samples(self) -> bool:
        """Whether the samples of the moment are still kept."""
        return self.kept_ms is None or self.at_ms >= self.kept_ms

    def partial_at(self, at_ms: int) -> str:
        """Why only a part of the topics was measured at an instant; empty when all were."""
        return self.partial[1] if self.partial is not None and milliseconds(self.partial[0]) <= at_ms else ""

    def topics_at(self, at_ms: int) -> dict[int, str]:
        """Target id -> topic of another instant."""
        return history.linked_at(self.links, _alive(self.monitor, at_ms))

    def version_known(self, record: Record) -> Version:
        """The version of the policy by which a replica answered."""
        known = [one for one in self.versions if record.version is not None and one.version <= record.version]
        return known[-1] if known else _version_at(self.versions, record.told_ms)

    def policy_of(self, version: Version, overrides: Mapping[str, str] | None = None) -> Policy:
        """A version's policy, resolved, with the keys that a ScaledObject gave beside it."""
        return policy_of({**version.given, **(overrides or {})}, self.minimum_interval)


async def remembered(work: TenantWork, name: str, at_ms: int | None) -> Moment:
    """Read a moment; None is now.

    Raises:
        NotFound: the tenant has and had no monitor of this name.
        InvalidInput: the moment lies in the future, before the monitor was registered, or nothing of it is kept.
    """
    found = await history.monitors_named(work, name)
    now_ms = milliseconds(await history.clock(work))
    at_ms = now_ms if at_ms is None else at_ms
    monitor = _registered(found, at_ms, now_ms)
    minimum = int(work.tenant["min_sampling_seconds"])
    versions = await history.versions(work, monitor["id"])
    lived_ms = _alive(monitor, at_ms)
    version = _version_at(versions, lived_ms)
    policy = policy_of(version.given, minimum)
    links = await history.links(work, monitor["id"])
    topics = history.linked_at(links, lived_ms)
    kept = await history.samples_since(work)
    at, since = instant(at_ms), instant(at_ms - policy.lookback_ms)
    window = instant(at_ms - TOLD_AGAIN_MS - ASKED_WITHIN_MS)
    told = current(await history.told_newest(work, monitor["id"], at, window), at_ms)
    older = [] if told else await history.told_between(work, monitor["id"], instant(0), at, 1)
    targets = sorted(topics)
    rows = await history.newest_rows(work, targets, at)
    later = [one.valid_from for one in versions if one.version > version.version]
    return Moment(
        at_ms=at_ms,
        now_ms=now_ms,
        monitor=monitor,
        minimum_interval=minimum,
        versions=versions,
        version=version,
        until=min(later, default=None),
        policy=policy,
        links=links,
        topics=topics,
        kept_ms=None if kept is None else milliseconds(kept),
        partial=await history.partial_since(work, monitor["id"]),
        rows=rows,
        rounds=await _rounds(work, rows, topics, policy, at),
        course=await history.course(
            work, targets, since, at, steps=_COURSE_STEPS,
            earliest=policy.offset_reset_policy is OffsetResetPolicy.EARLIEST,
        ),
        told=told,
        before=older[0] if older else None,
        decisions=await history.told_between(work, monitor["id"], since, at, _DECISIONS),
        gone_since=await history.gone_since(work, monitor, at),
    )  # fmt: skip


def policy_of(given: Mapping[str, str], minimum_interval: int) -> Policy:
    """Keys as given -> the policy, as the scaler reads it: the tick and the minimum were checked when it was written."""
    try:
        return Policy.parse(given, tick_seconds=0.0, minimum_interval=minimum_interval)
    except InvalidInput:
        return Policy.parse(given, tick_seconds=0.0)


async def _rounds(
    work: TenantWork, rows: Mapping[int, markers.Row], topics: Mapping[int, str], policy: Policy, at: datetime
) -> dict[int, list[markers.TargetRound]] | None:
    """The rounds that the verdict looks at, counted back from the newest one."""
    if not rows:
        return {target: [] for target in topics}
    newest_ms = max(row.round.at_ms for row in rows.values())
    widest = max(len(row.round.samples) for row in rows.values())
    since = instant(newest_ms - policy.lookback_ms)
    return await history.rounds(work, sorted(topics), since, at, _SAMPLES // max(widest, 1))


def _registered(found: Sequence[Row], at_ms: int, now_ms: int) -> Row:
    """The monitor of the moment: the last one that was registered under the name until then."""
    if at_ms > now_ms:
        raise _fault(f"lies in the future: the database's clock says {told_time(now_ms)}")
    oldest_ms = now_ms - history.DECISIONS_KEPT // timedelta(milliseconds=1)
    if at_ms < oldest_ms:
        raise _fault(
            f"is {told_time(at_ms)}, and nothing of that time is kept any more: decisions are kept for "
            f"{history.DECISIONS_KEPT.days} days; give milliseconds since 1970, or a time from {told_time(oldest_ms)} on"
        )
    for row in found:
        if milliseconds(row["created_at"]) <= at_ms:
            return row
    began = told_time(milliseconds(found[-1]["created_at"]))
    raise _fault(f"lies before the monitor was registered; give {began} or later")


def _alive(monitor: Row, at_ms: int) -> int:
    """The instant, or the last one at which the monitor was there."""
    deleted = monitor["deleted_at"]
    return at_ms if deleted is None else min(at_ms, milliseconds(deleted) - 1)


def _version_at(versions: Sequence[Version], at_ms: int) -> Version:
    valid = [one for one in versions if milliseconds(one.valid_from) <= at_ms]
    return valid[-1] if valid else versions[0]


def _fault(text: str) -> InvalidInput:
    return InvalidInput([Fault("at", text)])


def told_time(at_ms: int) -> str:
    """A time as sentences tell it: UTC, to the millisecond."""
    return instant(at_ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")
