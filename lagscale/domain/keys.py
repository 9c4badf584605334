"""The keys of a policy as one declarative table: names, kinds, defaults and rules.

Trigger metadata, the API and the documentation all render it; nothing else knows a key's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """How a key's text is read."""

    COUNT = "integer"
    NUMBER = "number"
    SECONDS = "seconds"
    FLAG = "true or false"
    CHOICE = "choice"
    PARTITIONS = "partitions"


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the policy: its name in metadata and API, how it is read, and what a user must know of it."""

    name: str
    kind: Kind
    default: str
    rule: str
    least: int = 0
    greatest: int | None = None
    choices: tuple[str, ...] = ()
    measures: bool = False  # changes what is measured, so it can never be overridden beside `serviceType`


KEYS: tuple[Key, ...] = (
    Key("lagThreshold", Kind.COUNT, "500", "breach level of one partition; HPA target unless `targetLag` is set", 1),
    Key("targetLag", Kind.NUMBER, "= lagThreshold", "the HPA target per replica (AverageValue); at most 3 decimals"),
    Key("sustainSeconds", Kind.COUNT, "120", "how long lag must last; 0 answers like a static threshold"),
    Key("samplingInterval", Kind.COUNT, "10", "seconds between two polls", 1, 3600, measures=True),
    Key("windowSize", Kind.COUNT, "not set", "checked only: (windowSize - 1) x samplingInterval >= sustainSeconds", 1),
    Key("maxGapSeconds", Kind.SECONDS, "2.5 x samplingInterval", "samples further apart leave a gap"),
    Key("staleAfterSeconds", Kind.SECONDS, "3 x samplingInterval, at least 30", "a newest sample older than this is stale"),
    Key("scaleUpStabilization", Kind.COUNT, "0", "seconds a higher value must have held before it is told", 0, 3600),
    Key("scaleDownStabilization", Kind.COUNT, "0", "seconds the highest value is kept; with the one above at most 3600", 0, 3600),
    Key("activationLagThreshold", Kind.COUNT, "0", "a total above this is backlog"),
    Key("activationSustainSeconds", Kind.COUNT, "= sustainSeconds", "how long backlog must last to wake; 0: first sample"),
    Key("workSeconds", Kind.SECONDS, "max(sustainSeconds, maxGapSeconds)", "an offset that advanced this recently is work"),
    Key("persistenceScope", Kind.CHOICE, "partition", "what must last", choices=("partition", "total")),
    Key("metric", Kind.CHOICE, "lag", "messages or seconds", choices=("lag", "timeLag")),
    Key("offsetResetPolicy", Kind.CHOICE, "latest", "where a group without commits begins", choices=("latest", "earliest"), measures=True),
    Key("scaleToZeroOnInvalidOffset", Kind.FLAG, "false", "may uncommitted partitions count 0 for activity?", measures=True),
    Key("isolationLevel", Kind.CHOICE, "read_uncommitted", "which end offset counts",
        choices=("read_uncommitted", "read_committed"), measures=True),
    Key("partitionLimitation", Kind.PARTITIONS, "all", "as in `1,3,5-8`; needs exactly one topic", measures=True),
    Key("allowIdleConsumers", Kind.FLAG, "false", "may the value ask for more replicas than partitions?"),
    Key("consumersPerReplica", Kind.COUNT, "1", "group members in one replica", 1),
    Key("limitToPartitionsWithLag", Kind.FLAG, "false", "no more replicas than partitions with lag"),
    Key("ensureEvenDistributionOfPartitions", Kind.FLAG, "false", "replicas divide the partitions"),
    Key("stuckAfterSeconds", Kind.SECONDS, "off", "a partition whose commit stands still this long under a running group is left out"),
    Key("drainSeconds", Kind.COUNT, "0", "a backlog that will be gone within this asks for no more replicas than there are"),
    Key("holdSeconds", Kind.COUNT, "3600", "how long the last known answer is held while lag is unknown"),
)  # fmt: skip
BY_NAME: Mapping[str, Key] = {key.name: key for key in KEYS}
