"""Health from reports: live is not ready, a leader must write, a standby must be warm."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import REGISTRY

from services.scraper import metrics
from services.scraper.health import ScraperHealth


@pytest.fixture
def health() -> ScraperHealth:
    return ScraperHealth(1.0, metrics.SampleAges())


def plan(**facts: Any) -> dict[str, Any]:
    return {"kind": "plan", "leading": True, "store": True, "epoch": 1, **facts}


def batch(**facts: Any) -> dict[str, Any]:
    numbers = dict.fromkeys(("built", "stored", "samples", "doubled", "late", "future", "since_plan_ms"), 0)
    return {
        "kind": "batch", "batch": 1, "lost_lease": False, "store_error": "", "codes": {}, "ages_ms": {}, **numbers, **facts,
    }  # fmt: skip


def test_while_spark_starts_it_is_live_and_not_ready(health: ScraperHealth) -> None:
    assert all(health.live().values())
    assert not all(health.ready().values())


def test_a_leader_that_writes_is_ready(health: ScraperHealth) -> None:
    health.apply_report(batch())
    health.apply_report(plan())
    health.apply_report(batch(stored=3))
    assert all(health.healthy().values())


def test_a_leader_whose_batches_are_not_stored_is_not_ready(health: ScraperHealth) -> None:
    health.apply_report(plan())
    health.apply_report(batch(store_error="The store is unavailable; retry."))
    assert not health.ready()["writing_or_standby"]
    assert all(health.live().values())


def test_a_warm_standby_is_ready_as_long_as_the_store_answers(health: ScraperHealth) -> None:
    health.apply_report(batch())
    health.apply_report(plan(leading=False))
    assert all(health.ready().values())
    health.apply_report(plan(leading=False, store=False))
    assert not all(health.ready().values())


def test_a_draining_one_is_not_ready(health: ScraperHealth) -> None:
    health.apply_report(batch())
    health.apply_report(plan())
    health.draining = True
    assert not all(health.ready().values())


def test_ages_grow_between_samples_and_are_forgotten_after_a_day() -> None:
    now = [1000.0]
    ages = metrics.SampleAges(lambda: now[0])
    ages.set_age("one-cluster", 1500)
    now[0] += 10

    def age(cluster: str) -> float | None:
        return REGISTRY.get_sample_value("lagscale_scraper_newest_sample_age_seconds", {"cluster": cluster})

    assert age("one-cluster") == pytest.approx(11.5)
    now[0] += 25 * 3600
    ages.set_age("another-cluster", 0)
    assert age("one-cluster") is None
