"""The scaler's fixed time limits, and how they nest with those that operators set (`settings.py`, in parentheses).

```text
KEDA's pollingInterval, 30 s ....... CALL_BURST_SECONDS: a tenant's calls of one interval arrive together
 └ unary call (call timeout, 0.8 s) . every wait of a call ends by its deadline, well before KEDA's own
    └ snapshot (TTL, 1 s) .......... GetMetrics and IsActive of one poll share it
       └ last-known answer ......... LAST_KNOWN_TTL_SECONDS, where the snapshot is unknown

connection (maximum age, 300 s, +- 10 % by gRPC; then grace, 60 s)
 └ stream ......................... STREAM_AGE_RATIO of the age, at least half of the grace
    ├ `true` repeated .............. STREAM_REPEAT_SECONDS; KEDA needs it within 30 s
    └ evaluated .................... on notification, STREAM_MIN_INTERVAL_SECONDS apart, or after POLL_SECONDS

stop: not ready (drain, 3 s) -> QUIET_SECONDS without a call, QUIET_TIMEOUT_SECONDS at most -> running calls end
within the call timeout + STOP_GRACE_SECONDS -> decisions are flushed within FLUSH_TIMEOUT_SECONDS
```
"""

from __future__ import annotations

from typing import Final

from lagscale.domain.explain.decision_diff import REPEAT_INTERVAL_MS

#: Registrations and samples are polled this often; notifications only make it sooner.
POLL_SECONDS: Final = 1.5
#: Between two polls of the registrations, however many changes are notified.
REGISTRATIONS_MIN_INTERVAL_SECONDS: Final = 0.1

#: KEDA loses an early `true`, so it is repeated; KEDA needs it at least every 30 s.
STREAM_REPEAT_SECONDS: Final = 20.0
STREAM_MIN_INTERVAL_SECONDS: Final = 0.2
#: gRPC spreads connection ages by a tenth in both directions; streams end before the earliest.
STREAM_AGE_RATIO: Final = 0.8

#: A last-known answer changes only with a new row; it is read again after this long, because rows may arrive late.
LAST_KNOWN_TTL_SECONDS: Final = 30.0
#: The outcome of registering an inline monitor: the calls of one poll do not try again.
REGISTRATION_TTL_SECONDS: Final = 20.0
#: A replica learns of a freeze within this.
FREEZE_DELAY_MS: Final = 5_000
#: KEDA polls without jitter: all of a tenant's monitors arrive at one point of its `pollingInterval`.
CALL_BURST_SECONDS: Final = 30.0

#: Decisions are written this often; an unchanged one is repeated after `DECISION_REPEAT_MS`.
DECISION_FLUSH_SECONDS: Final = 1.0
DECISION_REPEAT_MS: Final = REPEAT_INTERVAL_MS
#: Between two records that a monitor is still requested.
REQUEST_REPEAT_MS: Final = 3_600_000

#: Between two reads of the certificate files; a change is loaded when two reads in a row agree.
CERTIFICATE_POLL_SECONDS: Final = 1.0

HEARTBEAT_SECONDS: Final = 1.0
#: An event loop that has not run for this long is not alive.
ALIVE_SECONDS: Final = 10.0
#: Writing the local cache may take this share of the time, and happens at most once in `CACHE_WRITE_SECONDS`.
CACHE_WRITE_SHARE: Final = 0.05
CACHE_WRITE_SECONDS: Final = 1.0

QUIET_SECONDS: Final = 0.2
QUIET_TIMEOUT_SECONDS: Final = 2.0
STOP_GRACE_SECONDS: Final = 1.0
FLUSH_TIMEOUT_SECONDS: Final = 1.0
POOL_CLOSE_SECONDS: Final = 1.0

#: KEDA sends no pings: only ours detect dead peers. Milliseconds, as gRPC's options are.
KEEPALIVE_MS: Final = 30_000
KEEPALIVE_TIMEOUT_MS: Final = 10_000
MIN_PING_INTERVAL_MS: Final = 5_000
