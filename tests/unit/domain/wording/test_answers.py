"""Sentences for freezes."""

from __future__ import annotations

from lagscale.domain.wording.answers import describe_freezes
from tests.unit.domain.verdict.test_freezes import brake


def test_the_last_end_is_told_and_a_long_reason_is_cut() -> None:
    freezes = [brake("a", until=3_600_000, reason="short"), brake("b", until=7_200_000, reason="x" * 255)]
    told = describe_freezes(freezes, has_answer=True)
    assert told.startswith("Frozen until 2023-11-15T00:13:20Z (xxx")
    assert told.count("x") == 200
    error = describe_freezes(freezes[:1], has_answer=False)
    assert error == (
        "Frozen until 2023-11-14T23:13:20Z (short); there is no last-known answer. "
        "End the freeze with `lagscale unfreeze`."
    )
