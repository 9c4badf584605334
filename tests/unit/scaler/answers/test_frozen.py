"""What a replica remembers of frozen monitors, and how it survives a restart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.contract import Judgement, Reason, Told, Verdict
from lagscale.domain.verdict.freezes import Freeze
from lagscale.store.records import Registrations
from lagscale.store.registrations.frozen_answers import FrozenAnswer, FrozenAsk
from services.scaler.answers.frozen import FrozenAnswers, _Kept
from services.scaler.answers.last_known import LastAnswers
from services.scaler.local_cache import FROZEN, REGISTRATIONS, Scratch

BEGIN = 1_700_000_000_000
OFF = Policy.parse({"holdSeconds": "0"})
FREEZE = Freeze("f-1", 1, "main", None, BEGIN, BEGIN + 1000, "a move")
REMEMBERED = {
    FrozenAsk(1, 2): _Kept(frozenset({"f-1", "f-2"}), FrozenAnswer(Told(1500.0, True, BEGIN - 5), BEGIN)),
    FrozenAsk(1, 3, '{"lagThreshold": "5"}'): _Kept(frozenset({"f-2"}), FrozenAnswer(None, BEGIN)),
}


def answers(kept: dict[FrozenAsk, _Kept] | None = None) -> FrozenAnswers:
    made = FrozenAnswers(None, None, LastAnswers())  # type: ignore[arg-type]  # neither is asked
    made._kept.update(kept or {})
    return made


def test_a_restart_remembers(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    assert scratch.write(FROZEN, answers(REMEMBERED).dump())
    later = answers()
    later.restore(scratch.read(FROZEN))
    assert dict(later._kept) == REMEMBERED


@pytest.mark.parametrize(
    "content", [None, [], {}, {"kept": 3}, {"kept": [[1, 2]]}, {"kept": [[[1, 2, ""], ["f"], 0, [1.0]]]}]
)
def test_what_cannot_be_read_is_passed_over(content: Any) -> None:
    later = answers()
    later.restore(content)
    assert dict(later._kept) == {}


def test_what_no_freeze_keeps_any_more_is_forgotten() -> None:
    made = answers(REMEMBERED)
    made.forget_but([FREEZE])
    assert set(made._kept) == {FrozenAsk(1, 2)}
    made.forget_but(())
    assert dict(made._kept) == {}


def test_freezes_are_kept_with_the_registrations(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    assert scratch.write_registrations(Registrations(3, freezes=(FREEZE,), now_ms=BEGIN))
    found = scratch.read_registrations()
    assert found == Registrations(3, freezes=(FREEZE,))
    # And a file of the version before has none.
    document = json.loads((tmp_path / REGISTRATIONS).read_text())
    del document["content"]["freezes"]
    (tmp_path / REGISTRATIONS).write_text(json.dumps(document))
    assert scratch.read_registrations() == Registrations(3)


def known(seconds: int, value: float, active: bool) -> Judgement:
    at_ms = BEGIN + seconds * 1000
    verdict = Verdict.SUSTAINED if value else Verdict.CALM
    return Judgement(verdict, Reason.LASTED, value, active, at_ms, at_ms)


def remembered(*judgements: Judgement) -> LastAnswers:
    last = LastAnswers()
    for judgement in judgements:
        last.note("m", judgement, OFF)
    return last


def test_without_the_store_the_window_before_the_freeze_counts_and_no_limit() -> None:
    last = remembered(known(0, 900, True), known(200, 500, True), known(400, 100, True))
    for since in (400, 40_000):
        told = last.frozen("m", OFF, BEGIN + since * 1000)
        assert told == Told(500, True, BEGIN + 400_000)
    assert last.frozen("other", OFF, BEGIN + 400_000) is None


def test_without_the_store_what_came_after_the_freeze_does_not_count() -> None:
    last = remembered(known(0, 900, True), known(200, 500, True))
    # Seconds pass until a replica hears of it.
    assert last.frozen("m", OFF, BEGIN + 197_000) == Told(900, True, BEGIN + 200_000)
    assert last.frozen("m", OFF, BEGIN + 100_000) is None
    assert last.frozen("m", OFF, BEGIN - 6_000) is None
    assert remembered(known(0, 0, False)).frozen("m", OFF, BEGIN) is None
