"""The API's Prometheus metrics. Labels hold routes, never paths or names of objects."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

REQUESTS = Counter("lagscale_api_requests", "Requests by method, route and status.", ["method", "route", "status"])
REQUEST_SECONDS = Histogram(
    "lagscale_api_request_seconds",
    "Request duration by route, seconds.",
    ["route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
FAILED_ATTEMPTS = Counter("lagscale_api_failed_attempts", "Failed authentication attempts by reason.", ["reason"])
RATE_LIMITED = Counter(
    "lagscale_api_rate_limited",
    "Rate-limited requests by limit: requests of one `key`, or failed attempts of an `address`.",
    ["of"],
)
TENANT_RATE_LIMITED = Counter(
    "lagscale_api_over_rate", "Requests refused because the tenant's rate limit was exceeded."
)
PREFLIGHT_PROBES = Counter("lagscale_api_preflights", "Preflight probes of clusters by outcome.", ["outcome"])
GROUPS = Gauge("lagscale_api_groups", "Monitors by group status, as of the last count.", ["state"])
PARTITIONS = Gauge("lagscale_api_partitions", "Partitions of monitors by status, as of the last count.", ["state"])
MARKED = Gauge(
    "lagscale_api_marked_partitions", "Partitions of monitors that are stuck, or hot, as of the last count.", ["mark"]
)
