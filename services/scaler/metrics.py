"""The scaler's metrics, in prometheus-client's default registry."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

CALLS = Counter("lagscale_scaler_calls_total", "gRPC calls by method and status code.", ["method", "code"])
CALL_SECONDS = Histogram(
    "lagscale_scaler_call_seconds",
    "Duration of unary gRPC calls by method, in seconds.",
    ["method"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.8, 1.0),
)
VERDICTS = Counter(
    "lagscale_scaler_verdicts_total", "Verdicts read from the store, by verdict and reason.", ["verdict", "reason"]
)
ANSWERS = Counter(
    "lagscale_scaler_answers_total",
    "Answers to KEDA by source: measured, last_known, last_known_locally, activation, frozen or error.",
    ["source"],
)
FROZEN = Gauge("lagscale_scaler_frozen_monitors", "Monitors with an active freeze.")
LAST_KNOWN_RATIO = Gauge(
    "lagscale_scaler_last_known_ratio", "Ratio of monitors whose latest answer is a last-known answer (0 to 1)."
)
STORE_UP = Gauge("lagscale_scaler_store_up", "1 if the latest request to the store succeeded, otherwise 0.")
STORE_ERRORS = Counter("lagscale_scaler_store_errors_total", "Failed requests to the store, by error class.", ["error"])
CACHE_LOOKUPS = Counter(
    "lagscale_scaler_cache_lookups_total", "Cache lookups by cache and result (hit or miss).", ["cache", "result"]
)
BATCH = Histogram(
    "lagscale_scaler_batch_monitors", "Monitors evaluated per query.", buckets=(1, 2, 4, 8, 16, 64, 256, 1024)
)
QUOTA_EXCEEDED = Counter(
    "lagscale_scaler_quota_exceeded_total",
    "Calls over a quota by tenant, quota and outcome: rejected with RESOURCE_EXHAUSTED, or served from the cache.",
    ["tenant", "quota", "outcome"],
)
REGISTRATIONS = Gauge("lagscale_scaler_registrations", "Registered monitors loaded by this replica.")
STREAMS = Gauge("lagscale_scaler_streams", "Open gRPC streams by method.", ["method"])
CERTIFICATE_EXPIRY = Gauge(
    "lagscale_scaler_certificate_expiry_timestamp_seconds",
    "Expiry time of a certificate in use (server or client_ca), as Unix time in seconds.",
    ["certificate"],
)
CERTIFICATE_RELOADS = Counter(
    "lagscale_scaler_certificate_reloads_total", "Certificate reloads by result: loaded or rejected.", ["result"]
)
CERTIFICATE_REJECTED = Gauge(
    "lagscale_scaler_certificate_rejected",
    "1 if the certificate files were rejected and an earlier certificate is still in use, otherwise 0.",
)
DECISIONS_DROPPED = Counter(
    "lagscale_scaler_decisions_dropped_total", "Decisions dropped because they could not be written."
)
