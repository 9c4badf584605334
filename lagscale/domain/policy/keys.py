"""The keys of a policy as one declarative table: names, kinds, defaults and rules.

Trigger metadata, the API and the documentation all render it; nothing else knows a key's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class ValueType(StrEnum):
    """How a key's text is read."""

    COUNT = "integer"
    NUMBER = "number"
    SECONDS = "seconds"
    FLAG = "true or false"
    CHOICE = "choice"
    PARTITIONS = "partitions"


@dataclass(frozen=True, slots=True)
class PolicyKey:
    """One key of the policy: its name in metadata and API, how it is read, and what a user must know of it."""

    name: str
    value_type: ValueType
    default: str
    description: str
    minimum: int = 0
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    affects_sampling: bool = False  # changes what is measured, so it can never be overridden beside `serviceType`


KEYS: tuple[PolicyKey, ...] = (
    PolicyKey("lagThreshold", ValueType.COUNT, "500", "lag strictly above this is a breach: of one partition, or of the sum with `persistenceScope: total`; seconds with `metric: timeLag`; also the HPA target unless `targetLag` is set", 1),
    PolicyKey("targetLag", ValueType.NUMBER, "= lagThreshold", "what one replica should have to do: the HPA target (AverageValue); at most 3 decimals"),
    PolicyKey("sustainSeconds", ValueType.COUNT, "120", "how long lag must stay above the threshold without a break; 0 answers like a static threshold"),
    PolicyKey("samplingInterval", ValueType.COUNT, "10", "seconds between two polls; at least the scraper's tick and the tenant's minimum", 1, 3600, affects_sampling=True),
    PolicyKey("windowSize", ValueType.COUNT, "not set", "number of samples, only checked: (windowSize - 1) x samplingInterval must reach sustainSeconds", 1),
    PolicyKey("maxGapSeconds", ValueType.SECONDS, "2.5 x samplingInterval", "two samples further apart leave a gap, which ends an island unless lag provably stayed up; at least 2 x samplingInterval"),
    PolicyKey("staleAfterSeconds", ValueType.SECONDS, "3 x samplingInterval, at least 30", "a partition whose newest sample is older than this is not known; at least maxGapSeconds"),
    PolicyKey("scaleUpStabilization", ValueType.COUNT, "0", "a rising value is told only as high as it has held for so many seconds; the first answer comes at once", 0, 3600),
    PolicyKey("scaleDownStabilization", ValueType.COUNT, "0", "the highest answer is kept for so many seconds; with scaleUpStabilization at most 3600", 0, 3600),
    PolicyKey("activationLagThreshold", ValueType.COUNT, "0", "a total strictly above this, in messages, is backlog, which makes a workload active"),
    PolicyKey("activationSustainSeconds", ValueType.COUNT, "= sustainSeconds", "how long backlog must last to wake a group without members; 0 wakes at the first sample"),
    PolicyKey("workSeconds", ValueType.SECONDS, "max(sustainSeconds, maxGapSeconds)", "a group that advanced within so many seconds is active; 0 switches that off, else at least maxGapSeconds"),
    PolicyKey("persistenceScope", ValueType.CHOICE, "partition", "what must last: one partition's lag, or the total of all", choices=("partition", "total")),
    PolicyKey("metric", ValueType.CHOICE, "lag", "what thresholds count: messages (`lag`) or seconds that the oldest unread message has waited (`timeLag`)", choices=("lag", "timeLag")),
    PolicyKey("offsetResetPolicy", ValueType.CHOICE, "latest", "where a group without a commit begins: `latest` counts no lag, `earliest` all that can be read", choices=("latest", "earliest"), affects_sampling=True),
    PolicyKey("scaleToZeroOnInvalidOffset", ValueType.FLAG, "false", "true: a partition without a commit does not make the workload active; no effect with `earliest`", affects_sampling=True),
    PolicyKey("isolationLevel", ValueType.CHOICE, "read_uncommitted", "which end counts: the high watermark, or with `read_committed` the last stable offset",
        choices=("read_uncommitted", "read_committed"), affects_sampling=True),
    PolicyKey("partitionLimitation", ValueType.PARTITIONS, "all", "only these partitions, as in `1,3,5-8`; needs exactly one topic", affects_sampling=True),
    PolicyKey("allowIdleConsumers", ValueType.FLAG, "false", "true: the value may ask for more replicas than can have a partition"),
    PolicyKey("consumersPerReplica", ValueType.COUNT, "1", "group members in one replica", 1),
    PolicyKey("limitToPartitionsWithLag", ValueType.FLAG, "false", "true: no more replicas than partitions with lag need; excludes `allowIdleConsumers` and even split"),
    PolicyKey("ensureEvenDistributionOfPartitions", ValueType.FLAG, "false", "true: a number of replicas that divides the partitions; excludes the two above"),
    PolicyKey("stuckAfterSeconds", ValueType.SECONDS, "off", "a partition whose commit stands still for so long while the group has members is reported and left out of verdict and value; at least maxGapSeconds"),
    PolicyKey("drainSeconds", ValueType.COUNT, "0", "a backlog that will be at the threshold within so many seconds asks for no more replicas than there are; 0 is off"),
    PolicyKey("holdSeconds", ValueType.COUNT, "3600", "how long the last known answer is told while lag is unknown; 0 gives an error at once, as KEDA's `fallback` needs"),
)  # fmt: skip
KEYS_BY_NAME: Mapping[str, PolicyKey] = {key.name: key for key in KEYS}
