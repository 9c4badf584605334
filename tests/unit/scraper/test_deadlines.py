"""Time limits of the scraper that lie inside one another, as the picture in `deadlines.py` shows."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
import yaml

from lagscale.kafka.client import build_client_config
from lagscale.store import connection
from lagscale.store.samples.write import REMOVAL_SECONDS
from services.scraper import deadlines as d
from services.scraper.settings import ScraperSettings

ROOT = Path(__file__).parents[3]
SHORTEST, LONGEST = 0.5, 60.0


def ascending(*seconds: float) -> bool:
    return all(inner < outer for inner, outer in itertools.pairwise(seconds))


def settings_of_sessions() -> dict[str, float]:
    """Seconds by name, from the limits of the scraper's database sessions."""
    found = re.findall(r"set (\w+) = '(\d+)s'", connection._SCRAPER_SETTINGS)
    return {name: float(seconds) for name, seconds in found}


@pytest.mark.parametrize("tick", [SHORTEST, 1.0, 2.0, 5.0, 15.0, LONGEST])
def test_a_slot_ends_before_the_next_tick_and_the_lease_outlives_a_tick(tick: float) -> None:
    slot = d.compute_slot_seconds(tick)
    assert ascending(slot, tick, d.compute_lease_seconds(tick), d.compute_live_seconds(tick))
    assert d.compute_slot_seconds(tick, responsive=False) <= slot
    assert d.compute_slot_seconds(tick, responsive=False) <= d.UNRESPONSIVE_SLOT_SECONDS
    # A task that starts as late as it may still ends before the scraper counts as stuck.
    assert ascending(d.compute_start_delay_seconds(tick) + slot, d.compute_live_seconds(tick))


@pytest.mark.parametrize("tick", [SHORTEST, 1.0, 5.0, LONGEST])
def test_a_scraper_is_out_of_service_before_it_is_restarted(tick: float) -> None:
    assert ascending(d.compute_lease_seconds(tick), d.compute_ready_seconds(tick), d.compute_live_seconds(tick))
    assert d.STARTUP_SECONDS > d.MIN_LIVE_SECONDS


def test_a_request_ends_within_its_slot_and_leaves_time_for_others() -> None:
    assert ascending(d.CLIENT_MARGIN_SECONDS, d.MIN_TIMEOUT_SECONDS, d.UNRESPONSIVE_SLOT_SECONDS)
    assert ascending(d.MAX_SPREAD_SECONDS, d.MAX_SLOT_SECONDS)
    assert 0 < d.COORDINATOR_CHECK_SHARE < 1


def test_the_library_gives_up_later_than_every_caller_and_the_client_is_open_until_then() -> None:
    # The longest time of a caller, of which the library gets twice as much.
    assert ascending(d.MAX_SLOT_SECONDS * 2, d.MIN_LIBRARY_TIMEOUT_SECONDS, d.ABANDONED_SECONDS)
    assert ascending(d.TOPIC_QUERY_SECONDS * 2, d.MIN_LIBRARY_TIMEOUT_SECONDS)
    assert ascending(d.MIN_CLIENT_LIFETIME_SECONDS, d.MAX_CLIENT_LIFETIME_SECONDS)


def test_a_client_reconnects_while_its_unanswered_requests_still_explain_why() -> None:
    config = build_client_config(["kafka:9092"], {}, {})
    setup = config["socket.connection.setup.timeout.ms"] / 1000
    pause = config["reconnect.backoff.max.ms"] / 1000
    # Longer than the slot of an unresponsive cluster: the next poll finds the client connected.
    assert ascending(d.UNRESPONSIVE_SLOT_SECONDS, setup, d.MIN_CLIENT_LIFETIME_SECONDS)
    assert ascending(setup + pause, d.REASON_MAX_AGE_SECONDS)


def test_the_background_threads_retry_within_their_interval() -> None:
    assert ascending(
        d.UNRESPONSIVE_TOPIC_QUERY_SECONDS, d.TOPIC_QUERY_SECONDS, d.TOPIC_RETRY_SECONDS, d.SCOPE_WRITE_SECONDS,
        d.MAX_DISCOVERY_SECONDS,
    )  # fmt: skip
    assert ascending(d.LARGE_IDLE_SECONDS, d.LARGE_ROUND_SECONDS)
    assert ascending(d.HOUSEKEEPING_DELAY_SECONDS, d.HOUSEKEEPING_INTERVAL_SECONDS)


def test_the_server_ends_a_statement_before_its_client_gives_up_and_before_the_lease_ends() -> None:
    session = settings_of_sessions()
    assert ascending(
        session["idle_in_transaction_session_timeout"], session["statement_timeout"],
        connection.SCRAPER_RESPONSE_TIMEOUT_SECONDS,
    )  # fmt: skip
    assert connection.SCRAPER_RESPONSE_TIMEOUT_SECONDS <= d.MIN_LEASE_SECONDS
    assert d.REMOVAL_MARGIN_SECONDS > 0
    assert REMOVAL_SECONDS < d.HOUSEKEEPING_INTERVAL_SECONDS


def test_a_pod_is_given_more_time_to_stop_than_the_scraper_takes() -> None:
    documents = list(yaml.safe_load_all((ROOT / "k8s/base/scraper.yaml").read_text(encoding="utf-8")))
    (pod,) = [one["spec"]["template"]["spec"] for one in documents if one["kind"] == "Deployment"]
    assert ascending(d.SPARK_STOP_SECONDS, d.THREAD_JOIN_SECONDS, pod["terminationGracePeriodSeconds"])
    probe = pod["containers"][0]["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= d.STARTUP_SECONDS


def test_every_share_of_the_clients_is_a_part_of_them() -> None:
    fewest = next(
        one.ge for one in ScraperSettings.model_fields["scraper_max_kafka_clients"].metadata if hasattr(one, "ge")
    )
    assert fewest >= d.MIN_BACKGROUND_CLIENTS
    assert fewest // d.RESERVED_CLIENTS_DIVISOR <= fewest // d.UNRESPONSIVE_CLIENTS_DIVISOR <= fewest
    assert d.PROBED_GROUPS <= d.SLICE_GROUPS
