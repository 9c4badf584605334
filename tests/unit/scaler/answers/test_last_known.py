"""What a replica holds from its own memory equals what the rule of the held answer gives."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.contract import Judgement, Reason, Verdict, held
from lagscale.store.records import Registration, Registrations, TenantEntry
from services.scaler.answers.last_known import LastAnswers
from services.scaler.local_cache import ANSWERS, REGISTRATIONS, Scratch

POLICY = Policy.parse({"holdSeconds": "3600"})
BEGIN = 1_700_000_000_000


def known(seconds: int, value: float, active: bool, members: int | None = None) -> Judgement:
    verdict = Verdict.SUSTAINED if value else Verdict.CALM
    at_ms = BEGIN + seconds * 1000
    return Judgement(verdict, Reason.LASTED, value, active, at_ms, at_ms, members=members)


def unknown(seconds: int, now: int, members: int | None = None) -> Judgement:
    at_ms, now_ms = BEGIN + seconds * 1000, BEGIN + now * 1000
    return Judgement(Verdict.UNKNOWN, Reason.STALE, None, None, at_ms, now_ms, members=members)


def remembered(*judgements: Judgement, now: int) -> LastAnswers:
    last = LastAnswers()
    for judgement in judgements:
        last.note("m", judgement, POLICY)
    last.clock.note(BEGIN + now * 1000)
    return last


def test_the_greatest_value_of_the_window_is_held() -> None:
    last = remembered(known(0, 900, True), known(200, 500, True), known(400, 100, True), now=500)
    told = last.held("m", POLICY)
    assert told is not None
    assert (told.value, told.active, told.held_since_ms) == (500, True, BEGIN + 400_000)


def test_an_inactive_past_is_not_held() -> None:
    assert remembered(known(0, 0, False), known(15, 0, False), now=20).held("m", POLICY) is None


def test_members_alone_are_held_with_the_value_of_the_window() -> None:
    told = remembered(known(0, 0, False), unknown(15, 30, members=2), now=30).held("m", POLICY)
    assert told is not None
    assert (told.value, told.active) == (0, True)


def test_nothing_is_held_beyond_hold_seconds_of_the_last_known_instant() -> None:
    assert remembered(known(600, 500, True), now=600 + 3600).held("m", POLICY) is not None
    assert remembered(known(600, 500, True), now=600 + 3601).held("m", POLICY) is None


def test_a_policy_that_holds_nothing_holds_nothing() -> None:
    assert remembered(known(0, 500, True), now=1).held("m", replace(POLICY, hold_ms=0)) is None


def test_a_monitor_that_was_never_seen_has_nothing() -> None:
    assert remembered(known(0, 500, True), now=1).held("other", POLICY) is None


@given(
    st.lists(
        st.tuples(st.integers(1, 90), st.sampled_from([0.0, 10.0, 20.0, 500.0]), st.booleans(), st.booleans()),
        min_size=1,
        max_size=40,
    ),
    st.integers(0, 4000),
)
def test_the_compact_memory_is_as_good_as_all_judgements(
    steps: list[tuple[int, float, bool, bool]], later: int
) -> None:
    seconds, judgements = 0, []
    for step, value, active, is_known in steps:
        seconds += step
        judgements.append(known(seconds, value, active or value > 0) if is_known else unknown(seconds, seconds))
    now = seconds + later
    last = remembered(*judgements, now=now)
    expected = held([j for j in judgements if j.value is not None], None, BEGIN + now * 1000, POLICY)
    # The clock runs on between the two readings.
    got = last.held("m", POLICY)
    if expected is None or got is None:
        last_known = max((j.at_ms or 0 for j in judgements if j.value is not None), default=0)
        near_the_end = abs(BEGIN + now * 1000 - last_known - POLICY.hold_ms) < 1000
        assert expected == got or near_the_end
    else:
        assert expected == got


def test_the_memory_survives_a_restart(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "scaler")
    assert scratch.write(ANSWERS, remembered(known(0, 900, True), known(15, 500, True), now=20).dump())
    later = LastAnswers()
    later.restore(scratch.read(ANSWERS))
    told = later.held("m", POLICY)
    assert told is not None
    assert (told.value, told.held_since_ms) == (900, BEGIN + 15_000)


@pytest.mark.parametrize("content", [None, [], {}, {"clock": [1, 2]}, {"clock": [1, 2.0], "seen": {"m": [1]}}])
def test_a_memory_that_cannot_be_read_is_passed_over(content: object) -> None:
    last = LastAnswers()
    last.restore(content)
    assert last.held("m", POLICY) is None


def registrations() -> Registrations:
    given = {"lagThreshold": "100", "partitionLimitation": "1,3-5"}
    monitor = Registration(1, 1, "ingest", "main", "g", ("t",), Policy.parse(given), given, (4,), True, "ab" * 32, 3)
    tenant = TenantEntry(1, "acme", True, 1, 10, {"main": ("kafka:9092",)})
    return Registrations(9, (tenant,), (monitor,), {("default", "shop"): 1})


def test_registrations_survive_a_restart_as_they_were(tmp_path: Path) -> None:
    assert Scratch(tmp_path / "scaler").write_registrations(registrations())
    assert Scratch(tmp_path / "scaler").read_registrations() == registrations()


def test_files_on_scratch_are_private(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "scaler")
    scratch.write_registrations(registrations())
    assert stat.S_IMODE((tmp_path / "scaler" / REGISTRATIONS).stat().st_mode) == 0o600
    assert [path.name for path in (tmp_path / "scaler").iterdir()] == [REGISTRATIONS]


@pytest.mark.parametrize(
    "data", ["", "{", json.dumps({"form": 0, "content": {}}), json.dumps({"form": 1, "content": 3})]
)
def test_a_torn_or_older_file_is_passed_over(tmp_path: Path, data: str) -> None:
    (tmp_path / REGISTRATIONS).write_text(data)
    assert Scratch(tmp_path).read_registrations() is None


def test_scratch_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "scaler").write_text("in the way")
    assert not Scratch(tmp_path / "scaler").write(ANSWERS, {})
