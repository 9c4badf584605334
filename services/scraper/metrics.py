"""Metrics of the scraper, from the reports of Spark's processes. No label is a tenant's name; clusters are labeled by id."""

from __future__ import annotations

import time
from collections.abc import Callable

from prometheus_client import Counter, Gauge, Histogram

from services.scraper import deadlines

ROUNDS = Counter("lagscale_scraper_rounds", "Rounds stored (one per target and poll).")
SAMPLES = Counter("lagscale_scraper_samples", "Samples stored (one per partition and round).")
DISCARDED = Counter(
    "lagscale_scraper_rounds_discarded",
    "Rounds discarded, by reason: duplicate, late, future or lease_lost.",
    ["reason"],
)
POLLS = Counter("lagscale_scraper_polls", "Polls by object (cluster or target) and outcome.", ["object", "outcome"])
SKIPPED = Counter(
    "lagscale_scraper_slots_skipped", "Slots of a tick that were not polled; each leaves a gap in the samples."
)
STORE_ERRORS = Counter("lagscale_scraper_store_errors", "Failed requests to the store.")
RESTARTS = Counter("lagscale_scraper_query_restarts", "Restarts of the streaming query after a failure.")
LEADING = Gauge("lagscale_scraper_leading", "1 if this scraper is the leader, otherwise 0.")
CLIENTS = Gauge(
    "lagscale_scraper_kafka_clients", "Highest number of open Kafka clients in one worker process, at the latest tick."
)
TARGETS = Gauge("lagscale_scraper_targets", "Targets of active monitors in the latest plan.")
DISCOVERY = Gauge(
    "lagscale_scraper_topic_discovery_monitors",
    "Monitors with topic discovery, by state of the latest discovery.",
    ["state"],
)
POLL_SECONDS = Histogram(
    "lagscale_scraper_poll_seconds",
    "Duration of polling one slot, in seconds.",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8),
)
LARGE_SECONDS = Histogram(
    "lagscale_scraper_oversized_group_poll_seconds",
    "Duration of polling one oversized group out of band, in seconds.",
    buckets=(0.25, 0.5, 1, 2, 4, 8, 16, 32),
)
BATCH_SECONDS = Histogram(
    "lagscale_scraper_batch_seconds",
    "Time from planning a batch to its commit, in seconds.",
    buckets=(0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 10, 30),
)
PHASE_SECONDS = Gauge(
    "lagscale_scraper_batch_phase_seconds", "Duration of each Spark phase of the latest batch, in seconds.", ["phase"]
)
NEWEST_AGE = Gauge(
    "lagscale_scraper_newest_sample_age_seconds", "Age of the newest sample of a cluster, in seconds.", ["cluster"]
)


class SampleAges:
    """Lets `NEWEST_AGE` grow between samples: each age is computed when it is collected."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._sampled_at: dict[str, float] = {}

    def set_age(self, cluster: str, age_ms: int) -> None:
        """Set the age of a cluster's newest sample."""
        now = self._monotonic()
        if cluster not in self._sampled_at:
            NEWEST_AGE.labels(cluster).set_function(lambda: self._monotonic() - self._sampled_at[cluster])
        self._sampled_at[cluster] = now - age_ms / 1000
        oldest = now - deadlines.SAMPLE_AGE_FORGET_SECONDS
        for other in [other for other, taken in self._sampled_at.items() if taken < oldest]:
            NEWEST_AGE.remove(other)
            del self._sampled_at[other]
