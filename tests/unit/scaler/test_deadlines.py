"""Time limits of the scaler that must lie inside one another, with the defaults of its settings."""

from __future__ import annotations

from services.scaler import deadlines
from services.scaler.settings import ScalerSettings

#: KEDA needs an active stream to say so within this.
KEDA_STREAM_SECONDS = 30.0
#: gRPC ends a connection at its maximum age, or up to this ratio earlier.
GRPC_SPREAD = 0.1


def default(name: str) -> float:
    return float(ScalerSettings.model_fields[name].default)


def test_a_stream_repeats_true_before_keda_gives_it_up() -> None:
    later = max(deadlines.POLL_SECONDS, default("scaler_call_timeout_seconds"))
    assert deadlines.STREAM_REPEAT_SECONDS + later < KEDA_STREAM_SECONDS


def test_a_stream_ends_before_its_connection() -> None:
    assert deadlines.STREAM_AGE_RATIO < 1 - GRPC_SPREAD


def test_polls_are_further_apart_than_notified_ones() -> None:
    least = max(deadlines.REGISTRATIONS_MIN_INTERVAL_SECONDS, deadlines.STREAM_MIN_INTERVAL_SECONDS)
    assert least < deadlines.POLL_SECONDS


def test_the_event_loop_misses_several_heartbeats_before_it_is_not_alive() -> None:
    assert 3 * deadlines.HEARTBEAT_SECONDS < deadlines.ALIVE_SECONDS


def test_a_replica_loads_a_freeze_within_its_delay() -> None:
    assert (deadlines.POLL_SECONDS + deadlines.REGISTRATIONS_MIN_INTERVAL_SECONDS) * 1000 < deadlines.FREEZE_DELAY_MS
