"""Reads a policy from texts, by the table of keys, with every fault at once; for `Policy.parse`.

Trigger metadata and the API are read by this one reader.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from itertools import combinations

from lagscale.domain.policy.keys import KEYS_BY_NAME
from lagscale.domain.policy.policy import (
    MAX_LOOKBACK_MS,
    MAX_STABILIZATION_SECONDS,
    MAX_TIME_LAG_SECONDS,
    IsolationLevel,
    Metric,
    OffsetResetPolicy,
    PersistenceScope,
    Policy,
)
from lagscale.errors import FieldError, InvalidInput

#: Rules of the value of which only one can be followed.
_EXCLUSIVE_KEYS = ("allowIdleConsumers", "limitToPartitionsWithLag", "ensureEvenDistributionOfPartitions")
_NUMBER = re.compile(r"\d{1,18}(\.\d{1,18})?")


def parse_policy(values: Mapping[str, str], tick_seconds: float, minimum_interval: int) -> Policy:
    """See `Policy.parse`.

    Raises:
        InvalidInput: with every fault at once.
    """
    reader = _PolicyParser(values)
    policy = reader.policy(tick_seconds, minimum_interval)
    if reader.field_errors or policy is None:
        raise InvalidInput(reader.field_errors)
    return policy


class _PolicyParser:
    """Reads texts by the table and collects all faults."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = {name: str(text).strip() for name, text in values.items() if name in KEYS_BY_NAME}
        self.field_errors: list[FieldError] = []

    def field_error(self, name: str, text: str) -> None:
        self.field_errors.append(FieldError(name, text))

    def count(self, name: str, default: int) -> int:
        key = KEYS_BY_NAME[name]
        text = self.values.get(name)
        if text is None:
            return default
        if not re.fullmatch(r"[+-]?\d{1,18}", text):
            self.field_error(name, f"must be a whole number, not {text[:40]!r}")
            return default
        value = int(text)
        if value < key.minimum or (key.maximum is not None and value > key.maximum):
            upper = f" and at most {key.maximum}" if key.maximum is not None else ""
            self.field_error(name, f"must be at least {key.minimum}{upper}, not {value}")
            return default
        return value

    def number(self, name: str) -> Decimal | None:
        text = self.values.get(name)
        if text is None:
            return None
        try:
            value = Decimal(text)
        except InvalidOperation:
            value = Decimal("NaN")
        if not value.is_finite() or value < 0 or value >= Decimal(10) ** 15:
            self.field_error(name, f"must be a number from 0 to 10^15, not {text[:40]!r}")
            return None
        if round(value, 3) != value:
            self.field_error(name, f"has at most 3 decimals, not {text[:40]!r}")
            return None
        return value

    def milliseconds(self, name: str) -> int | None:
        value = self.number(name)
        return None if value is None else int(value * 1000)

    def flag(self, name: str) -> bool:
        text = self.values.get(name, "false").lower()
        if text not in {"true", "false"}:
            self.field_error(name, f"must be true or false, not {text[:40]!r}")
        return text == "true"

    def choice(self, name: str) -> str:
        key = KEYS_BY_NAME[name]
        text = self.values.get(name, key.default)
        if text not in key.choices:
            self.field_error(name, f"must be {' or '.join(key.choices)}, not {text[:40]!r}")
            return key.default
        return text

    def policy(self, tick_seconds: float, minimum_interval: int) -> Policy | None:
        sampling = self.count("samplingInterval", max(10, minimum_interval))
        if sampling < tick_seconds:
            self.field_error(
                "samplingInterval", f"is below the system's tick of {tick_seconds:g} s; ask for at least that"
            )
        elif sampling < minimum_interval:
            self.field_error("samplingInterval", f"is below this tenant's minimum of {minimum_interval} s")
        threshold = self.count("lagThreshold", 500)
        target = self.number("targetLag")
        if target is not None and target == 0:
            self.field_error("targetLag", "must be above 0")
        sustain = self.count("sustainSeconds", 120) * 1000
        self._check_window(sampling, sustain)
        gap, stale = self._read_gaps(sampling)
        self._check_together()
        return self._check_lookback(
            Policy(
                lag_threshold=threshold,
                target_lag=float(target) if target else float(threshold),
                sustain_ms=sustain,
                sampling_ms=sampling * 1000,
                max_gap_ms=gap,
                stale_after_ms=stale,
                activation_lag_threshold=self.count("activationLagThreshold", 0),
                activation_sustain_ms=self.count("activationSustainSeconds", sustain // 1000) * 1000,
                work_ms=self._read_progress(sustain, gap),
                hold_ms=self.count("holdSeconds", 3600) * 1000,
                persistence_scope=PersistenceScope(self.choice("persistenceScope")),
                offset_reset_policy=OffsetResetPolicy(self.choice("offsetResetPolicy")),
                scale_to_zero_on_invalid_offset=self.flag("scaleToZeroOnInvalidOffset"),
                isolation_level=IsolationLevel(self.choice("isolationLevel")),
                partition_limitation=self._read_partitions(),
                allow_idle_consumers=self.flag("allowIdleConsumers"),
                consumers_per_replica=self.count("consumersPerReplica", 1),
                limit_to_lagging=self.flag("limitToPartitionsWithLag"),
                even_split=self.flag("ensureEvenDistributionOfPartitions"),
                scale_up_ms=self.count("scaleUpStabilization", 0) * 1000,
                scale_down_ms=self.count("scaleDownStabilization", 0) * 1000,
                stuck_after_ms=self._read_stuck(gap),
                drain_ms=self.count("drainSeconds", 0) * 1000,
                metric=Metric(self.choice("metric")),
            )
        )

    def _check_window(self, sampling: int, sustain_ms: int) -> None:
        window_size = self.count("windowSize", 0) if "windowSize" in self.values else 0
        if window_size and (window_size - 1) * sampling * 1000 < sustain_ms:
            needed = -(-sustain_ms // (sampling * 1000)) + 1
            fits = (window_size - 1) * sampling
            self.field_error(
                "windowSize",
                f"{window_size} samples of {sampling} s prove {fits} s, less than sustainSeconds {sustain_ms // 1000}: "
                f"set windowSize to {needed} or more, or sustainSeconds to {fits} or less",
            )

    def _read_gaps(self, sampling: int) -> tuple[int, int]:
        gap_ms_given = self.milliseconds("maxGapSeconds")
        gap = gap_ms_given if gap_ms_given is not None else sampling * 2500
        if gap < 2 * sampling * 1000:
            self.field_error(
                "maxGapSeconds",
                f"must be at least 2 x samplingInterval = {2 * sampling}: one missing sample is no dip",
            )
        given_stale = self.milliseconds("staleAfterSeconds")
        stale = given_stale if given_stale is not None else max(3 * sampling * 1000, 30_000, gap)
        if stale < gap:
            self.field_error("staleAfterSeconds", f"must be at least maxGapSeconds = {gap / 1000:g}")
        return gap, stale

    def _read_progress(self, sustain: int, gap: int) -> int:
        given = self.milliseconds("workSeconds")
        if given is None:
            return max(sustain, gap) if sustain else 0
        if 0 < given < gap:
            self.field_error("workSeconds", f"must be 0 (off) or at least maxGapSeconds = {gap / 1000:g}")
        return given

    def _read_stuck(self, gap: int) -> int:
        given = self.milliseconds("stuckAfterSeconds") if self.values.get("stuckAfterSeconds") != "off" else None
        if given is None:
            return 0
        if given < gap:
            self.field_error("stuckAfterSeconds", f"must be at least maxGapSeconds = {gap / 1000:g}, or off")
        return given

    def _check_together(self) -> None:
        """Keys that exclude each other, and those that bound each other."""
        on = {name for name in _EXCLUSIVE_KEYS if self.values.get(name, "").lower() == "true"}
        for one, other in combinations([name for name in _EXCLUSIVE_KEYS if name in on], 2):
            self.field_error(other, f"excludes {one}; remove one of them")
        windows = [self.count(name, 0) for name in ("scaleUpStabilization", "scaleDownStabilization")]
        if sum(windows) > MAX_STABILIZATION_SECONDS:
            self.field_error(
                "scaleDownStabilization",
                f"and scaleUpStabilization are {sum(windows)} s together, at most {MAX_STABILIZATION_SECONDS}: "
                "shorten one of them",
            )
        if self.values.get("metric") == Metric.TIME_LAG:
            self._check_time_lag()

    def _check_time_lag(self) -> None:
        if self.values.get("persistenceScope") == PersistenceScope.TOTAL:
            self.field_error("persistenceScope", "total is not possible with metric timeLag: seconds do not add up")
        if self.values.get("ensureEvenDistributionOfPartitions", "").lower() == "true":
            self.field_error("ensureEvenDistributionOfPartitions", "is not possible with metric timeLag; remove it")
        for name in ("lagThreshold", "targetLag"):
            text = self.values.get(name, "")
            if _NUMBER.fullmatch(text) and Decimal(text) > MAX_TIME_LAG_SECONDS:
                self.field_error(
                    name, f"is in seconds with metric timeLag, at most {MAX_TIME_LAG_SECONDS}, not {text[:40]}"
                )

    def _read_partitions(self) -> tuple[tuple[int, int], ...]:
        text = self.values.get("partitionLimitation", "")
        ranges: list[tuple[int, int]] = []
        for part in (p.strip() for p in text.split(",") if p.strip()):
            match = re.fullmatch(r"(\d{1,6})(?:\s*-\s*(\d{1,6}))?", part)
            if match is None or int(match[2] or match[1]) < int(match[1]):
                self.field_error("partitionLimitation", f"must read like 1,3,5-8; {part[:40]!r} does not")
                return ()
            ranges.append((int(match[1]), int(match[2] or match[1])))
        return tuple(sorted(ranges))

    def _check_lookback(self, policy: Policy) -> Policy:
        if policy.lookback_ms > MAX_LOOKBACK_MS:
            self.field_error(
                "sustainSeconds",
                f"the policy looks back {policy.lookback_ms / 3_600_000:.1f} h, at most 18 h can be judged: "
                "shorten sustainSeconds, activationSustainSeconds, workSeconds, maxGapSeconds or staleAfterSeconds",
            )
        return policy
