"""The policy of a monitor with every default resolved; `parsing` reads it from texts."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

#: The greatest number of messages: thousandths of it fit into 64 bits, and 15 digits into a double.
MAX_LAG = 10**15
#: The longest lookback of an answer that the store's retention can serve.
MAX_LOOKBACK_MS = 18 * 3600 * 1000
#: The longest time for which a last-known answer is given, or a backlog may recover.
MAX_AHEAD_SECONDS = 24 * 3600
#: The HPA's default scale-down stabilization, on which its current replica count depends.
HPA_SCALE_DOWN_MS = 300_000
#: Limit of the sum of both stabilization windows, as the HPA has for each of its own.
MAX_STABILIZATION_SECONDS = 3600
#: The greatest threshold of `metric: timeLag` that the store's retention can serve.
MAX_TIME_LAG_SECONDS = 43_200


class PersistenceScope(StrEnum):
    """What must have lasted: one partition's lag, or the total."""

    PARTITION = "partition"
    TOTAL = "total"


class OffsetResetPolicy(StrEnum):
    """Where a group without a commit begins."""

    LATEST = "latest"
    EARLIEST = "earliest"


class IsolationLevel(StrEnum):
    """Whether `end` is the high watermark or the last stable offset."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class Metric(StrEnum):
    """What a threshold counts: messages, or seconds."""

    LAG = "lag"
    TIME_LAG = "timeLag"


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy with every default resolved. Durations are milliseconds, lags are messages.

    Of `metric: timeLag` only `lag_threshold` and `target_lag` are seconds. `stuck_after_ms` 0 means off.
    """

    lag_threshold: int
    target_lag: float
    sustain_ms: int
    sampling_ms: int
    max_gap_ms: int
    stale_after_ms: int
    activation_lag_threshold: int
    activation_sustain_ms: int
    work_ms: int
    hold_ms: int
    persistence_scope: PersistenceScope
    offset_reset_policy: OffsetResetPolicy
    scale_to_zero_on_invalid_offset: bool
    isolation_level: IsolationLevel
    partition_limitation: tuple[tuple[int, int], ...]
    allow_idle_consumers: bool
    consumers_per_replica: int
    limit_to_lagging: bool
    even_split: bool
    scale_up_ms: int
    scale_down_ms: int
    stuck_after_ms: int
    drain_ms: int
    metric: Metric
    active_value: float

    @property
    def target_milli(self) -> int:
        """The target lag in whole thousandths, in which values are computed exactly."""
        return round(Decimal(str(self.target_lag)) * 1000)

    @property
    def lookback_ms(self) -> int:
        """How far back samples can change the verdict of one instant, counted from that instant."""
        longest = max(self.sustain_ms, self.activation_sustain_ms, self.work_ms, self.stuck_after_ms)
        return self.stale_after_ms + self.max_gap_ms + longest

    @property
    def answer_lookback_ms(self) -> int:
        """How far back samples can change the answer: those of the earliest instant that counts for stabilization."""
        return self.lookback_ms + self.stabilization_ms

    @property
    def stabilization_ms(self) -> int:
        """How far back earlier values can change the current answer."""
        return self.scale_up_ms + self.scale_down_ms

    @property
    def hold_window_ms(self) -> int:
        """How far before the last known instant a last-known answer takes the greatest one."""
        return max(HPA_SCALE_DOWN_MS, self.scale_down_ms)
