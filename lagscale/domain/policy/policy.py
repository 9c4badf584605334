"""The policy: the numbers by which lag is judged, with every default resolved. `policy_text` reads it from texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

#: A lookback longer than this cannot be judged from what the store keeps.
MAX_LOOKBACK_MS = 18 * 3600 * 1000
#: The HPA's default scale-down window: what its present replicas stand on.
HPA_WINDOW_MS = 300_000
#: A reading of the group's members older than this at a round is not known.
MEMBERS_MAX_AGE_MS = 180_000
#: The two stabilisation windows together, as the HPA allows of its own.
MAX_STABILIZATION_SECONDS = 3600
#: Thresholds of `metric: timeLag` beyond this cannot be told from what the store keeps.
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
    persistence_scope: PersistenceScope = PersistenceScope.PARTITION
    offset_reset_policy: OffsetResetPolicy = OffsetResetPolicy.LATEST
    scale_to_zero_on_invalid_offset: bool = False
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    partition_limitation: tuple[tuple[int, int], ...] = ()
    allow_idle_consumers: bool = False
    consumers_per_replica: int = 1
    limit_to_lagging: bool = False
    even_split: bool = False
    scale_up_ms: int = 0
    scale_down_ms: int = 0
    stuck_after_ms: int = 0
    drain_ms: int = 0
    metric: Metric = Metric.LAG

    @property
    def lookback_ms(self) -> int:
        """How far back samples can change the verdict, counted from the instant judged."""
        longest = max(self.sustain_ms, self.activation_sustain_ms, self.work_ms, self.stuck_after_ms)
        return self.stale_after_ms + self.max_gap_ms + longest + self.stabilization_ms

    @property
    def stabilization_ms(self) -> int:
        """How far back values of the past change the answer of now."""
        return self.scale_up_ms + self.scale_down_ms

    @property
    def hold_window_ms(self) -> int:
        """How far behind the last known instant a held answer looks for the greatest one."""
        return max(HPA_WINDOW_MS, self.scale_down_ms)

    @classmethod
    def parse(cls, values: Mapping[str, str], *, tick_seconds: float = 5.0, minimum_interval: int = 1) -> Policy:
        """Read a policy from texts, as trigger metadata and the API give them; unknown names are passed over.

        Args:
            values: key -> text; spaces around a text are nothing.
            tick_seconds: the scraper's tick; no interval can be shorter.
            minimum_interval: the least `samplingInterval` that the tenant may ask for, in seconds.

        Raises:
            InvalidInput: with every fault at once.
        """
        # The reader builds policies, so it is imported here.
        from lagscale.domain.policy.parsing import parse_policy

        return parse_policy(values, tick_seconds, minimum_interval)
