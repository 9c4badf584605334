"""Last-known answers from a replica's memory equal those of the rule over all judgments."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.verdict.contract import Judgment, Reason, Verdict
from lagscale.domain.verdict.hold import pick_last_known
from lagscale.store.registrations.load import Registration, Registrations, TenantEntry
from services.scaler.answers.last_known import LastKnownAnswers
from services.scaler.local_cache import ANSWERS, REGISTRATIONS, LocalCache

POLICY = parse_policy({"holdSeconds": "3600"})
BEGIN = 1_700_000_000_000


def build_known(seconds: int, value: float, active: bool, members: int | None = None) -> Judgment:
    verdict = Verdict.SUSTAINED if value else Verdict.CALM
    at_ms = BEGIN + seconds * 1000
    return Judgment(verdict, Reason.LASTED, value, active, at_ms, at_ms, members=members)


def build_unknown(seconds: int, now: int, members: int | None = None) -> Judgment:
    at_ms, now_ms = BEGIN + seconds * 1000, BEGIN + now * 1000
    return Judgment(Verdict.UNKNOWN, Reason.STALE, None, None, at_ms, now_ms, members=members)


def build_last_known(*judgments: Judgment, now: int) -> LastKnownAnswers:
    last = LastKnownAnswers()
    for judgment in judgments:
        last.note("m", judgment, POLICY)
    last.clock.note(BEGIN + now * 1000)
    return last


def test_the_highest_value_of_the_window_is_the_last_known() -> None:
    last = build_last_known(
        build_known(0, 900, True), build_known(200, 500, True), build_known(400, 100, True), now=500
    )
    answer = last.find_answer("m", POLICY)
    assert answer is not None
    assert (answer.value, answer.active, answer.last_known_ms) == (500, True, BEGIN + 400_000)


def test_an_inactive_past_has_no_last_known_answer() -> None:
    assert (
        build_last_known(build_known(0, 0, False), build_known(15, 0, False), now=20).find_answer("m", POLICY) is None
    )


def test_members_alone_keep_the_value_of_the_window() -> None:
    answer = build_last_known(build_known(0, 0, False), build_unknown(15, 30, members=2), now=30).find_answer(
        "m", POLICY
    )
    assert answer is not None
    assert (answer.value, answer.active) == (0, True)


def test_a_last_known_answer_expires_after_hold_seconds() -> None:
    assert build_last_known(build_known(600, 500, True), now=600 + 3600).find_answer("m", POLICY) is not None
    assert build_last_known(build_known(600, 500, True), now=600 + 3601).find_answer("m", POLICY) is None


def test_hold_seconds_0_disables_last_known_answers() -> None:
    assert build_last_known(build_known(0, 500, True), now=1).find_answer("m", replace(POLICY, hold_ms=0)) is None


def test_an_unknown_monitor_has_no_last_known_answer() -> None:
    assert build_last_known(build_known(0, 500, True), now=1).find_answer("other", POLICY) is None


@given(
    st.lists(
        st.tuples(st.integers(1, 90), st.sampled_from([0.0, 10.0, 20.0, 500.0]), st.booleans(), st.booleans()),
        min_size=1,
        max_size=40,
    ),
    st.integers(0, 4000),
)
def test_the_compact_memory_is_equal_to_all_judgments(steps: list[tuple[int, float, bool, bool]], later: int) -> None:
    seconds, judgments = 0, []
    for step, value, active, is_known in steps:
        seconds += step
        judgments.append(
            build_known(seconds, value, active or value > 0) if is_known else build_unknown(seconds, seconds)
        )
    now = seconds + later
    last = build_last_known(*judgments, now=now)
    expected = pick_last_known([j for j in judgments if j.value is not None], None, BEGIN + now * 1000, POLICY)
    # The clock advances between the two reads.
    got = last.find_answer("m", POLICY)
    if expected is None or got is None:
        last_known = max((j.at_ms or 0 for j in judgments if j.value is not None), default=0)
        near_the_end = abs(BEGIN + now * 1000 - last_known - POLICY.hold_ms) < 1000
        assert expected == got or near_the_end
    else:
        assert expected == got


def test_the_memory_survives_a_restart(tmp_path: Path) -> None:
    local_cache = LocalCache(tmp_path / "scaler")
    assert local_cache.write(
        ANSWERS, build_last_known(build_known(0, 900, True), build_known(15, 500, True), now=20).dump()
    )
    later = LastKnownAnswers()
    later.restore(local_cache.read(ANSWERS))
    answer = later.find_answer("m", POLICY)
    assert answer is not None
    assert (answer.value, answer.last_known_ms) == (900, BEGIN + 15_000)


@pytest.mark.parametrize("content", [None, [], {}, {"clock": [1, 2]}, {"clock": [1, 2.0], "entries": {"m": [1]}}])
def test_invalid_memory_is_ignored(content: object) -> None:
    last = LastKnownAnswers()
    last.restore(content)
    assert last.find_answer("m", POLICY) is None


def registrations() -> Registrations:
    given = {"lagThreshold": "100", "partitionLimitation": "1,3-5"}
    monitor = Registration(1, 1, "ingest", "main", "g", ("t",), parse_policy(given), given, (4,), True, "ab" * 32, 3)
    tenant = TenantEntry(1, "acme", True, 1, 10, {"main": ("kafka:9092",)})
    return Registrations(9, (tenant,), (monitor,), {("default", "shop"): 1})


def test_registrations_survive_a_restart_as_they_were(tmp_path: Path) -> None:
    assert LocalCache(tmp_path / "scaler").write_registrations(registrations())
    assert LocalCache(tmp_path / "scaler").read_registrations() == registrations()


def test_files_of_the_local_cache_are_private(tmp_path: Path) -> None:
    local_cache = LocalCache(tmp_path / "scaler")
    local_cache.write_registrations(registrations())
    assert stat.S_IMODE((tmp_path / "scaler" / REGISTRATIONS).stat().st_mode) == 0o600
    assert [path.name for path in (tmp_path / "scaler").iterdir()] == [REGISTRATIONS]


@pytest.mark.parametrize(
    "data", ["", "{", json.dumps({"format": 0, "content": {}}), json.dumps({"format": 2, "content": 3})]
)
def test_a_damaged_or_older_file_is_ignored(tmp_path: Path, data: str) -> None:
    (tmp_path / REGISTRATIONS).write_text(data)
    assert LocalCache(tmp_path).read_registrations() is None


@pytest.mark.parametrize("name", ["version", "tenants", "monitors", "bindings"])
def test_registrations_without_a_part_are_ignored(tmp_path: Path, name: str) -> None:
    local_cache = LocalCache(tmp_path)
    local_cache.write_registrations(registrations())
    document = json.loads((tmp_path / REGISTRATIONS).read_text())
    del document["content"][name]
    (tmp_path / REGISTRATIONS).write_text(json.dumps(document))
    assert local_cache.read_registrations() is None


def test_an_unwritable_local_cache_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "scaler").write_text("in the way")
    assert not LocalCache(tmp_path / "scaler").write(ANSWERS, {})
