"""The scraper's metrics, fed by the pipeline's reports. Tenants' names are no labels; clusters are told by their ids."""

from __future__ import annotations

import time
from collections.abc import Callable

from prometheus_client import Counter, Gauge, Histogram

ROUNDS = Counter("lagscale_scraper_rounds", "Rounds stored, one for each target and poll.")
SAMPLES = Counter("lagscale_scraper_samples", "Samples stored, one for each partition of a round.")
NOT_STORED = Counter(
    "lagscale_scraper_not_stored", "Rounds that were not stored: doubled, late, future, or lost lease.", ["reason"]
)
POLLS = Counter("lagscale_scraper_polls", "Polls of clusters and targets by what became of them.", ["of", "code"])
SKIPPED = Counter("lagscale_scraper_skipped", "Slots of a tick that were not polled, an honest gap.")
STORE_ERRORS = Counter("lagscale_scraper_store_errors", "Times that the store did not answer.")
RESTARTS = Counter("lagscale_scraper_query_restarts", "Restarts of the streaming query after a failure.")
LEADING = Gauge("lagscale_scraper_leading", "Whether this scraper leads: 1 or 0.")
CLIENTS = Gauge(
    "lagscale_scraper_clients", "Open Kafka clients of the worker process that has the most, at the newest tick."
)
TARGETS = Gauge("lagscale_scraper_targets", "Targets of live monitors in the newest plan.")
SCOPES = Gauge(
    "lagscale_scraper_scopes", "Monitors whose topics are looked up, by how that went when it was last done.", ["code"]
)
POLL_SECONDS = Histogram(
    "lagscale_scraper_poll_seconds",
    "How long polling one slot took, seconds.",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8),
)
LARGE_SECONDS = Histogram(
    "lagscale_scraper_large_seconds",
    "How long a round of one large group took, which is polled beside the ticks; seconds.",
    buckets=(0.25, 0.5, 1, 2, 4, 8, 16, 32),
)
BATCH_SECONDS = Histogram(
    "lagscale_scraper_batch_seconds",
    "How long a batch took from plan to commit, seconds.",
    buckets=(0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 10, 30),
)
PHASE_SECONDS = Gauge(
    "lagscale_scraper_batch_phase_seconds", "Spark's time for the phases of the newest batch, seconds.", ["phase"]
)

#: A cluster that has had no sample for so long is forgotten, as it may be removed.
_FORGET_SECONDS = 24 * 3600.0


NEWEST_AGE = Gauge(
    "lagscale_scraper_newest_sample_age_seconds", "Age of a cluster's newest sample, seconds.", ["cluster"]
)


class NewestAges:
    """Keeps the ages growing between samples: each is computed at the moment it is asked for."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._sampled_at: dict[str, float] = {}

    def set_age(self, cluster: str, age_ms: int) -> None:
        """A cluster's newest sample is this old."""
        now = self._monotonic()
        if cluster not in self._sampled_at:
            NEWEST_AGE.labels(cluster).set_function(lambda: self._monotonic() - self._sampled_at[cluster])
        self._sampled_at[cluster] = now - age_ms / 1000
        for other in [other for other, taken in self._sampled_at.items() if now - taken > _FORGET_SECONDS]:
            NEWEST_AGE.remove(other)
            del self._sampled_at[other]
