"""Records of a verdict: the request, the judgment, and the answer for KEDA. All engines and services share them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lagscale.domain.lag.time_lag import TimeLag
from lagscale.domain.policy.policy import Policy


class Verdict(StrEnum):
    """Three values, never two."""

    SUSTAINED = "sustained"
    CALM = "calm"
    UNKNOWN = "unknown"


class Reason(StrEnum):
    """The reason of a verdict; stored, counted and rendered into sentences."""

    LASTED = "lasted"  # sustained: lag above the threshold for sustainSeconds
    NO_BREACH = "no_breach"  # calm: no newest sample is above the threshold
    NOT_YET = "not_yet"  # calm: above the threshold, for less than sustainSeconds
    NO_DATA = "no_data"  # unknown: a target has no round yet
    NOTHING_TO_MEASURE = "nothing_to_measure"  # unknown: no partition is in scope
    NO_TOPIC = "no_topic"  # unknown: none of the topics exists
    STALE = "stale"  # unknown: the newest round is too old
    MISSING = "missing"  # unknown: a partition has no fresh sample
    START_UNKNOWN = "open_island"  # unknown: above the threshold, with an unknown start
    ACTIVITY_UNDETERMINED = "activity_untold"  # unknown: activity is undetermined
    MEMBERS_UNKNOWN = "members_unknown"  # unknown: the floor for missing partitions needs the member count


@dataclass(frozen=True, slots=True)
class VerdictRequest:
    """One monitor to judge.

    Attributes:
        tenant_id: whose targets they are; every statement names it.
        target_ids: what the monitor measures; empty is "nothing to measure".
        policy: with all defaults resolved.
        upto_ms: samples after this do not exist; None in production, where every stored row counts.
        judged_at_ms: *now*; None means the database's clock, read in the verdict's own statement.
    """

    tenant_id: int
    target_ids: tuple[int, ...]
    policy: Policy
    upto_ms: int | None = None
    judged_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Island:
    """The trailing island that matters most: the longest one of a fresh partition, or of the total.

    Attributes:
        target_id, partition: None for the total.
        lag: newest lag, messages; of `metric: timeLag` the lower bound, milliseconds.
        since_ms, span_ms: first sample's time, and last minus first.
        start_known: whether it is known to have started there.
    """

    target_id: int | None
    partition: int | None
    lag: int
    since_ms: int
    span_ms: int
    start_known: bool


@dataclass(frozen=True, slots=True)
class Judgment:
    """The evaluation of one monitor at one instant.

    Attributes:
        value: the metric value, None while unknown: messages, or seconds x replicas with `metric: timeLag`.
        active: None while unknown.
        at_ms: T, the time of the newest round; None without one.
        now_ms: the instant judged.
        raw, scale_up_value: the value before stabilization, and after scaleUpStabilization.
        total: lag of the fresh partitions, messages, before caps.
        partitions, missing: in scope, and of these without a fresh sample.
        incomplete: whether one of them, or a whole target, has no fresh sample.
        lagging: partitions with fresh lag above 0, without stuck ones.
        stuck, stuck_lag: (target id, partition) of stuck partitions, and the lag of the fresh ones among them, which
            counts for activity only.
        time_lag: of `metric: timeLag`, the greatest by its estimate among the fresh partitions that are not stuck.
        recovering: sustained, and every sustained backlog reaches the threshold within `drainSeconds`.
        members: of the newest round, None when not known.
        activates_from_zero: the verdict is unknown, but backlog is proven and the group has no members.
        absent: listed topics that do not exist, by target id.
    """

    verdict: Verdict
    reason: Reason
    value: float | None
    active: bool | None
    at_ms: int | None
    now_ms: int
    raw: float | None = None
    scale_up_value: float | None = None
    total: int = 0
    partitions: int = 0
    missing: int = 0
    incomplete: bool = False
    lagging: int = 0
    stuck: tuple[tuple[int, int], ...] = ()
    stuck_lag: int = 0
    time_lag: TimeLag | None = None
    recovering: bool = False
    members: int | None = None
    activates_from_zero: bool = False
    island: Island | None = None
    absent: tuple[int, ...] = ()

    @property
    def measured_total(self) -> int | None:
        """The total, or None where no partition is fresh: unknown is not 0."""
        return self.total if self.partitions > self.missing else None


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer for KEDA: value and activity of one instant, so that they cannot contradict.

    `last_known_ms` is K, the last known instant, of a last-known answer; None of a measured one.
    """

    value: float
    active: bool
    last_known_ms: int | None = None
