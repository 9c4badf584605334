"""What a tenant may use: the quotas' names, where they begin, and the one sentence of all that is refused by them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Quota(StrEnum):
    """A quota by the name that the API, the errors and the metrics use."""

    MONITORS = "monitors"
    CLUSTERS = "clusters"
    PATTERNS = "patterns"
    PARTITIONS = "partitions"
    CALLS = "callsPerSecond"
    REQUESTS = "requestsPerSecond"


#: What a new tenant has, as the columns of the table say too.
DEFAULT_QUOTAS: Final[Mapping[Quota, int]] = {
    Quota.MONITORS: 1000,
    Quota.CLUSTERS: 50,
    Quota.PATTERNS: 100,
    Quota.PARTITIONS: 50_000,
    Quota.CALLS: 500,
    Quota.REQUESTS: 200,
}
#: Column of the table `tenant` by quota.
QUOTA_COLUMNS: Final[Mapping[Quota, str]] = {
    Quota.MONITORS: "max_monitors",
    Quota.CLUSTERS: "max_clusters",
    Quota.PATTERNS: "max_patterns",
    Quota.PARTITIONS: "max_partitions",
    Quota.CALLS: "calls_per_second",
    Quota.REQUESTS: "requests_per_second",
}
#: What is counted, and what its owner can do without the platform's administrators.
_WORDING: Final[Mapping[Quota, tuple[str, str]]] = {
    Quota.MONITORS: ("monitors", "delete some"),
    Quota.CLUSTERS: ("clusters", "delete some"),
    Quota.PATTERNS: ("monitors without a list of topics", "list their topics, or delete some"),
    Quota.PARTITIONS: ("measured partitions", "delete monitors, or leave topics out"),
    Quota.CALLS: ("calls of KEDA a second", "raise pollingInterval"),
    Quota.REQUESTS: ("API requests a second", "ask less often"),
}

#: The tenant's limit of monitors that ScaledObjects register, and why one more is refused.
AUTO_QUOTA: Final = "maxAutoMonitors"
AUTO_QUOTA_EXCEEDED: Final = (
    "ScaledObjects have registered as many monitors of this tenant as they may (maxAutoMonitors): remove some, register "
    "this one by the API, or ask for a higher quota."
)


def api_field_of(quota: Quota) -> str:
    """The tenant's field that sets it, as users write it."""
    first, *rest = QUOTA_COLUMNS[quota].split("_")
    return first + "".join(word.capitalize() for word in rest)


def describe_excess(quota: Quota, limit: int, found: str = "") -> str:
    """Why something is refused: the quota, its limit, what to do, and whom to ask.

    Args:
        quota: which one.
        limit: the tenant's.
        found: what did not fit, as in "a topic of 600 partitions, where 200 are left"; may be left out.
    """
    counted, remediation = _WORDING[quota]
    reason = f": {found}" if found else ""
    return (
        f"Over quota{reason}. The tenant may have {limit} {counted}; {remediation}, or ask a platform administrator "
        f"to raise the quota `{quota.value}`."
    )
