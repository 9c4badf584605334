"""Every time limit and count of the scraper. Seconds, unless a name says otherwise; T is the tick.

What stands further inside ends earlier, so that the outer one can still use its result:

```text
 pod's grace period 30
 └ join of the query's thread 7.0 ─ Spark's own stop 4.0

 restart by /livez max(10 T, 60) ─ out of service by /readyz max(5 T, 15)
 └ lease max(2 T, 4.0): a leader that hangs loses it before it counts as stuck
   └ tick T
     ├ start of a task after its plan: max(5.0, 2 T), else the slot is skipped
     └ slot min(T/2, 5.0), of unresponsive clusters 1.0 at most: `until`
       ├ a Kafka request: what is left of the slot, less 0.1 so that the client's reason arrives; at least 0.2
       ├ question whether a silent listener uses TLS: 0.3, once for a client
       ├ check of coordinators: half of what is left; good for 1.0, which is the rest of the round
       └ end offsets: 2.0 after the commits at most, else lag would mix two points in time

 beyond the slot, because the client goes on by itself:
   connection setup 3.0 and pause before the next attempt 1.0 (lagscale/kafka/client.py): the next poll finds it connected
   client kept after an abandoned request 30.0
   └ librdkafka's limit of a coordinator request max(20.0, twice what is left)
   silent client replaced after 5.0, doubling up to 60.0

 background poller: round of one oversized group 20.0, then a pause of twice its duration
 topic discovery: interval 60.0 at most
   ├ retry of a failed query 15.0
   ├ unchanged state written every 30.0
   └ query of one cluster 5.0, of an unresponsive one 2.0

 backoff of a cluster: 3 polls at once, then pauses up to 15.0; the clusters of one outage spread over a quarter of it

 database (lagscale/store): lock 1 < idle in transaction 2 = connect 2 < statement 3 < response 4.0 = the shortest lease
   housekeeping: statement 60 < response 65
```

`tests/unit/scraper/test_deadlines.py` checks the nesting. Settings of the same kind are in `settings.py`.
"""

from __future__ import annotations

from typing import Final

# The tick, the lease and the health of the service.
MAX_START_DELAY_SECONDS: Final = 5.0
MAX_SLOT_SECONDS: Final = 5.0
UNRESPONSIVE_SLOT_SECONDS: Final = 1.0
MIN_LEASE_SECONDS: Final = 4.0
MIN_READY_SECONDS: Final = 15.0
MIN_LIVE_SECONDS: Final = 60.0
#: Spark may take this long to start on a busy machine before the process counts as stuck.
STARTUP_SECONDS: Final = 180.0


def compute_start_delay_seconds(tick_seconds: float) -> float:
    """A task that starts later than this after its plan polls nothing: a gap is better than a round at a wrong time."""
    return max(MAX_START_DELAY_SECONDS, 2 * tick_seconds)


def compute_slot_seconds(tick_seconds: float, *, responsive: bool = True) -> float:
    """For all requests of one slot."""
    seconds = min(tick_seconds / 2, MAX_SLOT_SECONDS)
    return seconds if responsive else min(seconds, UNRESPONSIVE_SLOT_SECONDS)


def compute_lease_seconds(tick_seconds: float) -> float:
    """How long the lease lasts without being renewed."""
    return max(2 * tick_seconds, MIN_LEASE_SECONDS)


def compute_ready_seconds(tick_seconds: float) -> float:
    """Without a plan, or a leader's batch, for longer the scraper is not ready."""
    return max(5 * tick_seconds, MIN_READY_SECONDS)


def compute_live_seconds(tick_seconds: float) -> float:
    """Without a plan for longer the scraper is to be restarted."""
    return max(10 * tick_seconds, MIN_LIVE_SECONDS)


# Shutdown and restarts of the query.
THREAD_JOIN_SECONDS: Final = 7.0
SPARK_STOP_SECONDS: Final = 4.0
QUERY_CHECK_SECONDS: Final = 0.5
#: A query that ran for this long was healthy: after it the pauses between restarts begin with the shortest again.
STABLE_QUERY_SECONDS: Final = 60.0
MIN_RESTART_PAUSE_SECONDS: Final = 0.5
MAX_RESTART_PAUSE_SECONDS: Final = 30.0

# Requests to one cluster.
#: The client's limit is this much shorter than ours, so that its reason arrives.
CLIENT_MARGIN_SECONDS: Final = 0.1
MIN_TIMEOUT_SECONDS: Final = 0.2
#: End offsets that arrive later than this after the first commits make no round.
MAX_SPREAD_SECONDS: Final = 2.0
#: Share of the remaining time for the check of coordinators; the rest is for groups whose coordinator answers.
COORDINATOR_CHECK_SHARE: Final = 0.5
#: A coordinator that answered needs no other check for this long: the rest of the round.
COORDINATOR_OK_SECONDS: Final = 1.0
#: Where no group is described for at least this long, and brokers list groups, they do not answer that request at all;
#: it is sent again after a while.
MIN_SILENCE_SECONDS: Final = 0.25
DESCRIBE_RETRY_SECONDS: Final = 60.0
#: librdkafka's own limit of a request to a coordinator; at least, see `kafka/coordinators.py`.
MIN_LIBRARY_TIMEOUT_SECONDS: Final = 20.0
#: Longer than abandoned requests to a coordinator are under way.
ABANDONED_SECONDS: Final = 30.0
#: A client that got no answer is replaced, but not before it is this old.
MIN_CLIENT_LIFETIME_SECONDS: Final = 5.0
MAX_CLIENT_LIFETIME_SECONDS: Final = 60.0
#: A client retries at least every second, so an older reason does not hold any more.
REASON_MAX_AGE_SECONDS: Final = 10.0
#: Connection and handshake that find out whether a listener without an answer uses TLS; once for a client.
TLS_PROBE_SECONDS: Final = 0.3
GROUP_KIND_SECONDS: Final = 30.0
#: Share of the remaining time for the kinds of groups that no listing names.
GROUP_KIND_SHARE: Final = 0.25
CLIENT_LOG_SECONDS: Final = 60.0

# The background poller of oversized groups.
LARGE_ROUND_SECONDS: Final = 20.0
#: Pause after a round, as a multiple of its duration, so that it takes a part of one core only.
LARGE_PAUSE_FACTOR: Final = 2.0
LARGE_IDLE_SECONDS: Final = 0.5

# Topic discovery.
#: However seldom a monitor is polled, new topics are found within this.
MAX_DISCOVERY_SECONDS: Final = 60.0
TOPIC_QUERY_SECONDS: Final = 5.0
UNRESPONSIVE_TOPIC_QUERY_SECONDS: Final = 2.0
#: A failed query delays the whole pass, so it is repeated this seldom.
TOPIC_RETRY_SECONDS: Final = 15.0
SCOPE_WRITE_SECONDS: Final = 30.0

# Planning.
#: A cluster that failed is polled at the next ticks this many times, then less and less often.
IMMEDIATE_POLLS: Final = 3
MAX_BACKOFF_SECONDS: Final = 15
#: Share of a pause that is left out by chance: clusters that failed together should not be polled together again.
BACKOFF_JITTER: Final = 0.25
#: Members and state of a group are read this often where there are too many groups to read them at each poll.
DESCRIBE_SECONDS: Final = 30
#: Targets over their quota are polled this often, for their number of partitions.
OVER_QUOTA_SECONDS: Final = 60
#: A jump of the database's clock by more ticks than this starts the count of ticks again.
MAX_TICK_GAP: Final = 100

# Housekeeping and metrics.
#: Housekeeping's connection waits this much longer than the longest statement of removal takes.
REMOVAL_MARGIN_SECONDS: Final = 5.0
#: Long enough for a leader to be known.
HOUSEKEEPING_DELAY_SECONDS: Final = 30.0
HOUSEKEEPING_INTERVAL_SECONDS: Final = 300.0
#: A cluster without a sample for longer is removed from the metrics, as it may be deleted.
SAMPLE_AGE_FORGET_SECONDS: Final = 24 * 3600.0

# Counts.
#: Clusters that one task polls at once.
POLL_THREADS: Final = 64
#: Clients with a token that are opened at once.
OPENER_THREADS: Final = 8
TOPIC_QUERY_THREADS: Final = 32
#: Requests of one kind to coordinators under way at once, by one client.
MAX_PENDING_REQUESTS: Final = 256
#: Groups whose commits are requested together; their end offsets follow when all have answered.
SLICE_GROUPS: Final = 500
#: Unresponsive clusters polled at one tick; more when those of the tick before answered, as after an outage of all.
MAX_PROBES: Final = 16
#: Groups polled of an unresponsive cluster: enough to see whether it answers again.
PROBED_GROUPS: Final = 50
#: Unresponsive clusters asked for topics in one pass.
MAX_TOPIC_PROBES: Final = 8
#: A group with more partitions is oversized: one round of it may take longer than a tick.
LARGE_PARTITIONS: Final = 20_000
#: Groups of a tick whose members and state are read at each poll.
DESCRIBE_GROUPS: Final = 200
#: Groups of one cluster that stay in one slot.
MIN_SPLIT_GROUPS: Final = 250
#: Groups that no listing names and whose kind is looked up at one poll.
MAX_UNLISTED_GROUPS: Final = 20
#: Part of a process's clients that unresponsive clusters can count on, and the part that they get at most.
RESERVED_CLIENTS_DIVISOR: Final = 4
UNRESPONSIVE_CLIENTS_DIVISOR: Final = 2
#: Part of a process's clients for each background thread, and the fewest.
BACKGROUND_CLIENTS_DIVISOR: Final = 4
MIN_BACKGROUND_CLIENTS: Final = 8
