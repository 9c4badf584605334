"""Reports of a batch: its parts are added up, and they arrive at the service that they are addressed to."""

from __future__ import annotations

from typing import Any

from devstack.server import wait_until
from services.scraper.worker_reports import BatchPart, WorkerReports, send_report


def test_a_batch_is_the_sum_of_its_parts() -> None:
    parts = [
        BatchPart(built=3, stored=2, samples=9, late=1, codes={"target:ok": 2}, ages_ms={1: 100}, since_plan_ms=500),
        BatchPart(built=1, doubled=1, codes={"target:ok": 1, "cluster:ok": 1}, ages_ms={2: 50}, since_plan_ms=900),
        BatchPart(built=4, store_error="The store is away."),
        BatchPart(built=2, future=2, lost_lease=True),
    ]
    assert BatchPart.merge(parts) == BatchPart(
        built=10, stored=2, samples=9, doubled=1, future=2, late=1, lost_lease=True, store_error="The store is away.",
        codes={"target:ok": 3, "cluster:ok": 1}, ages_ms={1: 100, 2: 50}, since_plan_ms=900,
    )  # fmt: skip
    assert BatchPart.merge([]) == BatchPart()


def test_only_reports_with_the_token_arrive() -> None:
    received: list[dict[str, Any]] = []
    reports = WorkerReports(received.append)
    reports.start()
    try:
        name, _, _ = reports.address.partition("/")
        send_report(f"{name}/another", "plan", leading=True)
        send_report(reports.address, "plan", leading=False)
        wait_until(lambda: bool(received), 10, "the report arrived")
    finally:
        reports.stop()
    assert received == [{"kind": "plan", "leading": False}]
