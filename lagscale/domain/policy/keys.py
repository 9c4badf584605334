"""The keys of a policy as one declarative table: names, types, defaults, units, bounds and rules.

The parser, tenants' limits, effective values, the API schema, the page of trigger metadata and the verdict's parameter
in SQL all read it. A new key is one line here and one field of `Policy`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from lagscale.domain.policy.policy import (
    MAX_AHEAD_SECONDS,
    MAX_LAG,
    MAX_LOOKBACK_MS,
    MAX_STABILIZATION_SECONDS,
    IsolationLevel,
    Metric,
    OffsetResetPolicy,
    PersistenceScope,
)

#: The text of a duration that never elapses.
OFF = "off"
#: The text of a partition limitation that excludes nothing.
ALL = "all"
#: The texts of a flag: those that KEDA accepts, which are Go's.
TRUE_TEXTS = frozenset({"1", "t", "T", "TRUE", "true", "True"})
FALSE_TEXTS = frozenset({"0", "f", "F", "FALSE", "false", "False"})


class ValueType(StrEnum):
    """How a key's text is parsed."""

    COUNT = "integer"
    NUMBER = "number"
    SECONDS = "seconds"
    FLAG = "true or false"
    CHOICE = "choice"
    PARTITIONS = "partitions"


class Unit(StrEnum):
    """What a number counts. Fields of `Policy` hold seconds as milliseconds."""

    NONE = ""
    LAG = "messages, or seconds with metric timeLag"
    MESSAGES = "messages"
    SECONDS = "seconds"
    SAMPLES = "samples"
    MEMBERS = "members"


@dataclass(frozen=True, slots=True)
class Derived:
    """A default that depends on keys further up in the table.

    Attributes:
        text: the rule, for the documentation.
        compute: the value, from the numbers of those keys in their own units.
    """

    text: str
    compute: Callable[[Mapping[str, Decimal]], Decimal]


@dataclass(frozen=True, slots=True)
class PolicyKey:
    """One key of the policy.

    Attributes:
        field: of `Policy`; None for a key that is only validated.
        default: its text, or how it is derived; None for a key without a default.
        choice: the enumeration of a choice, whose values are the allowed texts.
        minimum, maximum: of a number, inclusive; every statement and protocol carries all values between them. 0 otherwise.
        affects_sampling: whether it changes what is measured; such a key cannot be overridden with `serviceType`.
        ask: its place in the composite type `full_ask`, the verdict's parameter in SQL; None for a key that no statement
            needs. A new key's column is the last one.
    """

    name: str
    field: str | None
    value_type: ValueType
    default: str | Derived | None
    unit: Unit
    minimum: int
    maximum: int
    description: str
    choice: type[StrEnum] | None = None
    affects_sampling: bool = False
    ask: int | None = None

    @property
    def default_text(self) -> str:
        """The default as the documentation shows it."""
        return self.default.text if isinstance(self.default, Derived) else self.default or "not set"

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers, which can have bounds."""
        return self.value_type in {ValueType.COUNT, ValueType.NUMBER, ValueType.SECONDS}

    @property
    def choices(self) -> tuple[str, ...]:
        """The allowed texts of a choice; empty for other types."""
        return () if self.choice is None else tuple(self.choice)


_SECONDS, _MAX = Unit.SECONDS, MAX_STABILIZATION_SECONDS
_LOOKBACK = MAX_LOOKBACK_MS // 1000
KEYS: tuple[PolicyKey, ...] = (
    PolicyKey("lagThreshold", "lag_threshold", ValueType.COUNT, "500", Unit.LAG, 1, MAX_LAG, "a lag strictly above this is a breach: of one partition, or of the sum with `persistenceScope: total`; in seconds with `metric: timeLag`; also the HPA target unless `targetLag` is set", ask=5),
    PolicyKey("targetLag", "target_lag", ValueType.NUMBER, Derived("= lagThreshold", lambda keys: keys["lagThreshold"]), Unit.LAG, 0, MAX_LAG, "the lag per replica to aim for: the HPA target (AverageValue); at most 3 decimals", ask=6),
    PolicyKey("sustainSeconds", "sustain_ms", ValueType.COUNT, "120", _SECONDS, 0, _LOOKBACK, "how long lag must stay above the threshold without interruption; 0 acts like a static threshold", ask=7),
    PolicyKey("samplingInterval", "sampling_ms", ValueType.COUNT, "10", _SECONDS, 1, 3600, "seconds between two polls; at least the scraper's tick and the tenant's minimum", affects_sampling=True),
    PolicyKey("windowSize", None, ValueType.COUNT, None, Unit.SAMPLES, 1, 1_000_000, "number of samples, only validated: (windowSize - 1) x samplingInterval must reach sustainSeconds"),
    PolicyKey("maxGapSeconds", "max_gap_ms", ValueType.SECONDS, Derived("2.5 x samplingInterval", lambda keys: keys["samplingInterval"] * Decimal("2.5")), _SECONDS, 0, _LOOKBACK, "two samples further apart leave a gap, which ends an island unless lag provably stayed up; at least 2 x samplingInterval", ask=8),
    PolicyKey("staleAfterSeconds", "stale_after_ms", ValueType.SECONDS, Derived("3 x samplingInterval, at least 30", lambda keys: max(3 * keys["samplingInterval"], Decimal(30), keys["maxGapSeconds"])), _SECONDS, 0, _LOOKBACK, "a partition whose newest sample is older than this is stale; at least maxGapSeconds", ask=9),
    PolicyKey("scaleUpStabilization", "scale_up_ms", ValueType.COUNT, "0", _SECONDS, 0, _MAX, "a rising value counts only as far as it lasted for so many seconds; the first value counts at once"),
    PolicyKey("scaleDownStabilization", "scale_down_ms", ValueType.COUNT, "0", _SECONDS, 0, _MAX, f"the greatest value of so many seconds counts; with scaleUpStabilization at most {_MAX}"),
    PolicyKey("activationLagThreshold", "activation_lag_threshold", ValueType.COUNT, "0", Unit.MESSAGES, 0, MAX_LAG, "a total strictly above this, in messages, is backlog, which makes a workload active", ask=10),
    PolicyKey("activationSustainSeconds", "activation_sustain_ms", ValueType.COUNT, Derived("= sustainSeconds", lambda keys: keys["sustainSeconds"]), _SECONDS, 0, _LOOKBACK, "how long backlog must last to activate a group without members; 0 activates at the first sample", ask=11),
    PolicyKey("workSeconds", "work_ms", ValueType.SECONDS, Derived("max(sustainSeconds, maxGapSeconds)", lambda keys: max(keys["sustainSeconds"], keys["maxGapSeconds"]) if keys["sustainSeconds"] else Decimal(0)), _SECONDS, 0, _LOOKBACK, "a group that made progress within so many seconds is active; 0 disables this, otherwise at least maxGapSeconds", ask=12),
    PolicyKey("persistenceScope", "persistence_scope", ValueType.CHOICE, "partition", Unit.NONE, 0, 0, "what must last: the lag of one partition, or the total of all", PersistenceScope, ask=14),
    PolicyKey("metric", "metric", ValueType.CHOICE, "lag", Unit.NONE, 0, 0, "what thresholds count: messages (`lag`), or the seconds for which the oldest unread message has waited (`timeLag`)", Metric, ask=23),
    PolicyKey("offsetResetPolicy", "offset_reset_policy", ValueType.CHOICE, "latest", Unit.NONE, 0, 0, "where a group without a commit starts: `latest` counts no lag, `earliest` everything that can be read", OffsetResetPolicy, True, ask=15),
    PolicyKey("scaleToZeroOnInvalidOffset", "scale_to_zero_on_invalid_offset", ValueType.FLAG, "false", Unit.NONE, 0, 0, "true: a partition without a commit does not make the workload active; no effect with `earliest`", affects_sampling=True, ask=16),
    PolicyKey("isolationLevel", "isolation_level", ValueType.CHOICE, "read_uncommitted", Unit.NONE, 0, 0, "which end offset counts: the high watermark, or with `read_committed` the last stable offset", IsolationLevel, True),
    PolicyKey("partitionLimitation", "partition_limitation", ValueType.PARTITIONS, ALL, Unit.NONE, 0, 0, "only these partitions, for example `1,3,5-8`; needs exactly one topic", affects_sampling=True),
    PolicyKey("allowIdleConsumers", "allow_idle_consumers", ValueType.FLAG, "false", Unit.NONE, 0, 0, "true: the value may ask for more replicas than can have a partition", ask=17),
    PolicyKey("consumersPerReplica", "consumers_per_replica", ValueType.COUNT, "1", Unit.MEMBERS, 1, 10_000, "group members per replica", ask=18),
    PolicyKey("limitToPartitionsWithLag", "limit_to_lagging", ValueType.FLAG, "false", Unit.NONE, 0, 0, "true: no more replicas than partitions with lag need; excludes `allowIdleConsumers` and even split", ask=19),
    PolicyKey("ensureEvenDistributionOfPartitions", "even_split", ValueType.FLAG, "false", Unit.NONE, 0, 0, "true: a replica count that divides the partitions evenly; excludes the two above", ask=20),
    PolicyKey("stuckAfterSeconds", "stuck_after_ms", ValueType.SECONDS, OFF, _SECONDS, 0, _LOOKBACK, "a partition whose commit does not advance for so many seconds while the group has members is reported as stuck and excluded from verdict and value; at least maxGapSeconds", ask=21),
    PolicyKey("drainSeconds", "drain_ms", ValueType.COUNT, "0", _SECONDS, 0, MAX_AHEAD_SECONDS, "a backlog that is recovering, so that it reaches the threshold within so many seconds, asks for no more than the current replicas; 0 is off", ask=22),
    PolicyKey("holdSeconds", "hold_ms", ValueType.COUNT, "3600", _SECONDS, 0, MAX_AHEAD_SECONDS, "for how long the last-known answer is given while lag is unknown; 0 gives an error at once, as KEDA's `fallback` needs"),
    PolicyKey("activeValue", "active_value", ValueType.NUMBER, "0", Unit.LAG, 0, MAX_LAG, "the value of a calm group that is active, for formulas of KEDA's `scalingModifiers`, which never see whether it is active; at most targetLag"),
)  # fmt: skip
KEYS_BY_NAME: Mapping[str, PolicyKey] = {key.name: key for key in KEYS}


def describe_keys() -> str:
    """All keys with their types and defaults in one line, for API schemas."""
    return "; ".join(f"`{key.name}`: {key.value_type.value}, default {key.default_text}" for key in KEYS)
