"""The cache of frozen answers, and its restart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.verdict.contract import Answer, Judgment, Reason, Verdict
from lagscale.domain.verdict.freezes import Freeze
from lagscale.store.registrations.answers import FrozenAnswer, FrozenAnswerKey
from lagscale.store.registrations.load import Registrations
from services.scaler.answers.frozen import FrozenAnswerCache, _StoredAnswer
from services.scaler.answers.last_known import LastKnownAnswers
from services.scaler.local_cache import FROZEN, REGISTRATIONS, LocalCache

BEGIN = 1_700_000_000_000
OFF = parse_policy({"holdSeconds": "0"})
FREEZE = Freeze("f-1", 1, "main", None, BEGIN, BEGIN + 1000, "a move")
REMEMBERED = {
    FrozenAnswerKey(1, 2): _StoredAnswer(
        frozenset({"f-1", "f-2"}), FrozenAnswer(Answer(1500.0, True, BEGIN - 5), BEGIN)
    ),
    FrozenAnswerKey(1, 3, '{"lagThreshold": "5"}'): _StoredAnswer(frozenset({"f-2"}), FrozenAnswer(None, BEGIN)),
}


def answers(stored: dict[FrozenAnswerKey, _StoredAnswer] | None = None) -> FrozenAnswerCache:
    made = FrozenAnswerCache(None, None, LastKnownAnswers())  # type: ignore[arg-type]  # neither is asked
    made._stored.update(stored or {})
    return made


def test_answers_survive_a_restart(tmp_path: Path) -> None:
    local_cache = LocalCache(tmp_path)
    assert local_cache.write(FROZEN, answers(REMEMBERED).dump())
    later = answers()
    later.restore(local_cache.read(FROZEN))
    assert dict(later._stored) == REMEMBERED


@pytest.mark.parametrize(
    "content", [None, [], {}, {"stored": 3}, {"stored": [[1, 2]]}, {"stored": [[[1, 2, ""], ["f"], 0, [1.0]]]}]
)
def test_invalid_content_is_ignored(content: Any) -> None:
    later = answers()
    later.restore(content)
    assert dict(later._stored) == {}


def test_answers_without_a_freeze_are_dropped() -> None:
    made = answers(REMEMBERED)
    made.retain([FREEZE])
    assert set(made._stored) == {FrozenAnswerKey(1, 2)}
    made.retain(())
    assert dict(made._stored) == {}


def test_freezes_are_stored_with_the_registrations(tmp_path: Path) -> None:
    local_cache = LocalCache(tmp_path)
    assert local_cache.write_registrations(Registrations(3, freezes=(FREEZE,), now_ms=BEGIN))
    found = local_cache.read_registrations()
    assert found == Registrations(3, freezes=(FREEZE,))
    # A file without freezes is valid, too.
    document = json.loads((tmp_path / REGISTRATIONS).read_text())
    del document["content"]["freezes"]
    (tmp_path / REGISTRATIONS).write_text(json.dumps(document))
    assert local_cache.read_registrations() == Registrations(3)


def build_known(seconds: int, value: float, active: bool) -> Judgment:
    at_ms = BEGIN + seconds * 1000
    verdict = Verdict.SUSTAINED if value else Verdict.CALM
    return Judgment(verdict, Reason.LASTED, value, active, at_ms, at_ms)


def build_last_known(*judgments: Judgment) -> LastKnownAnswers:
    last = LastKnownAnswers()
    for judgment in judgments:
        last.note("m", judgment, OFF)
    return last


def test_without_the_store_the_window_before_the_freeze_counts_and_no_limit() -> None:
    last = build_last_known(build_known(0, 900, True), build_known(200, 500, True), build_known(400, 100, True))
    for since in (400, 40_000):
        answer = last.find_frozen_answer("m", OFF, BEGIN + since * 1000)
        assert answer == Answer(500, True, BEGIN + 400_000)
    assert last.find_frozen_answer("other", OFF, BEGIN + 400_000) is None


def test_without_the_store_what_came_after_the_freeze_does_not_count() -> None:
    last = build_last_known(build_known(0, 900, True), build_known(200, 500, True))
    # A replica learns of a freeze seconds later.
    assert last.find_frozen_answer("m", OFF, BEGIN + 197_000) == Answer(900, True, BEGIN + 200_000)
    assert last.find_frozen_answer("m", OFF, BEGIN + 100_000) is None
    assert last.find_frozen_answer("m", OFF, BEGIN - 6_000) is None
    assert build_last_known(build_known(0, 0, False)).find_frozen_answer("m", OFF, BEGIN) is None
