"""The quotas of a tenant: names, defaults, columns, and the text of a request that exceeds one."""

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


#: Quotas of a new tenant; defaults of the columns of `tenant` have the same values.
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
    Quota.PARTITIONS: ("measured partitions", "delete monitors, or exclude topics"),
    Quota.CALLS: ("KEDA calls per second", "raise pollingInterval"),
    Quota.REQUESTS: ("API requests per second", "reduce the request rate"),
}

#: The tenant's limit of monitors that ScaledObjects register, and why one more is refused.
AUTO_QUOTA: Final = "maxAutoMonitors"
AUTO_QUOTA_EXCEEDED: Final = (
    "ScaledObjects have registered as many monitors of this tenant as they may (maxAutoMonitors): remove some, register "
    "this one by the API, or ask for a higher quota."
)


def api_field_of(quota: Quota) -> str:
    """The tenant's field that sets the quota, as users write it."""
    first, *rest = QUOTA_COLUMNS[quota].split("_")
    return first + "".join(word.capitalize() for word in rest)


def describe_excess(quota: Quota, limit: int, found: str = "") -> str:
    """The text of a request that exceeds a quota: its limit, what to do, and whom to ask.

    Args:
        quota: the quota.
        limit: of the tenant.
        found: what did not fit, such as "a topic of 600 partitions, 200 are left"; optional.
    """
    counted, remediation = _WORDING[quota]
    reason = f": {found}" if found else ""
    return (
        f"Quota `{quota.value}` exceeded{reason}. The limit is {limit} {counted}; {remediation}, or ask a platform "
        "administrator to raise it."
    )
