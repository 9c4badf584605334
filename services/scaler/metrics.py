"""The scaler's metrics, in prometheus-client's default registry; every room of the scaler counts here."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

CALLS = Counter("lagscale_scaler_calls_total", "Calls of KEDA by method and gRPC code.", ["method", "code"])
CALL_SECONDS = Histogram(
    "lagscale_scaler_call_seconds",
    "How long unary calls took, seconds.",
    ["method"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.8, 1.0),
)
VERDICTS = Counter("lagscale_scaler_verdicts_total", "Verdicts read from the store.", ["verdict", "reason"])
ANSWERS = Counter(
    "lagscale_scaler_answers_total",
    "What KEDA was told, by where it came from: measured, held, held_locally, waking, frozen, or error.",
    ["kind"],
)
FROZEN = Gauge("lagscale_scaler_frozen_monitors", "Monitors under a freeze that has not ended.")
HELD_SHARE = Gauge(
    "lagscale_scaler_held_share", "Share of held answers among the newest answer of each monitor, 0 to 1."
)
STORE_UP = Gauge("lagscale_scaler_store_up", "Whether the store answered the newest question: 1 or 0.")
STORE_ERRORS = Counter("lagscale_scaler_store_errors_total", "Questions that the store did not answer.", ["error"])
MEMO = Counter("lagscale_scaler_memo_total", "Look-ups of the scaler's memos.", ["memo", "result"])
BATCH = Histogram(
    "lagscale_scaler_batch_monitors", "Monitors judged by one query.", buckets=(1, 2, 4, 8, 16, 64, 256, 1024)
)
OVER_QUOTA = Counter(
    "lagscale_scaler_over_quota_total",
    "Calls beyond a quota, by tenant and quota: refused with RESOURCE_EXHAUSTED, or answered from memory.",
    ["tenant", "quota", "outcome"],
)
REGISTRATIONS = Gauge("lagscale_scaler_registrations", "Monitors known to this replica.")
STREAMS = Gauge("lagscale_scaler_streams", "Open streams by method.", ["method"])
CERTIFICATE_EXPIRY = Gauge(
    "lagscale_scaler_certificate_expiry_seconds",
    "When a certificate in use expires, seconds since 1970: server, or client_ca.",
    ["certificate"],
)
CERTIFICATE_RELOADS = Counter(
    "lagscale_scaler_certificate_reloads_total",
    "Changes of the certificate files, taken or refused.",
    ["result"],
)
CERTIFICATE_REFUSED = Gauge(
    "lagscale_scaler_certificate_refused", "Whether what the certificate files hold is not what is in use: 1 or 0."
)
DECISIONS_LOST = Counter("lagscale_scaler_decisions_lost_total", "Decisions that could not be written.")
