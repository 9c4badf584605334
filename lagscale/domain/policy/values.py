"""A policy -> every key of it with its value in force. Answers show it, and tenants' limits are held against it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from lagscale.domain.policy.policy import Policy

#: `stuckAfterSeconds` without a time.
OFF = "off"
#: `partitionLimitation` without one.
ALL = "all"


def list_effective_values(policy: Policy) -> dict[str, str | int | float | bool]:
    """Every key of the policy with its value in force."""
    ranges = (str(low) if low == high else f"{low}-{high}" for low, high in policy.partition_limitation)
    return {
        "lagThreshold": policy.lag_threshold,
        "targetLag": policy.target_lag,
        "sustainSeconds": policy.sustain_ms / 1000,
        "samplingInterval": policy.sampling_ms / 1000,
        "maxGapSeconds": policy.max_gap_ms / 1000,
        "staleAfterSeconds": policy.stale_after_ms / 1000,
        "activationLagThreshold": policy.activation_lag_threshold,
        "activationSustainSeconds": policy.activation_sustain_ms / 1000,
        "workSeconds": policy.work_ms / 1000,
        "persistenceScope": policy.persistence_scope.value,
        "offsetResetPolicy": policy.offset_reset_policy.value,
        "scaleToZeroOnInvalidOffset": policy.scale_to_zero_on_invalid_offset,
        "isolationLevel": policy.isolation_level.value,
        "partitionLimitation": ",".join(ranges) or ALL,
        "allowIdleConsumers": policy.allow_idle_consumers,
        "consumersPerReplica": policy.consumers_per_replica,
        "holdSeconds": policy.hold_ms / 1000,
        "scaleUpStabilization": policy.scale_up_ms / 1000,
        "scaleDownStabilization": policy.scale_down_ms / 1000,
        "limitToPartitionsWithLag": policy.limit_to_lagging,
        "ensureEvenDistributionOfPartitions": policy.even_split,
        "stuckAfterSeconds": policy.stuck_after_ms / 1000 if policy.stuck_after_ms else OFF,
        "drainSeconds": policy.drain_ms / 1000,
        "metric": policy.metric.value,
    }


def format_effective_values(policy: Policy, given: Mapping[str, str]) -> dict[str, str]:
    """The same as texts, each in its one form; and `windowSize`, which is no part of a policy, where it is given."""
    texts = {name: _text(value) for name, value in list_effective_values(policy).items()}
    size = given.get("windowSize", "").strip()
    return texts | {"windowSize": str(int(size))} if size else texts


def _text(value: str | float | bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else format_number(Decimal(str(value)))


def format_number(value: Decimal) -> str:
    """A number as the policy's language has it: without an exponent, and without what is nothing."""
    return format(value.normalize(), "f")
