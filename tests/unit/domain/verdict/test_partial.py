"""A part of the topics proves lag that lasted, and no calm."""

from __future__ import annotations

import pytest

from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.contract import Judgement, Reason, Verdict, told
from lagscale.domain.verdict.partial import by_a_part

POLICY = Policy.parse({"targetLag": "100"})


def judgement(verdict: Verdict, value: float | None, *, members: int | None = 2, wakes: bool = False) -> Judgement:
    active = None if value is None else value > 0
    return Judgement(verdict, Reason.LASTED, value, active, 1, 2, members=members, wakes=wakes)


@pytest.mark.parametrize(("value", "members", "wanted"), [(500.0, 2, 500.0), (150.0, 2, 200.0), (150.0, 0, 150.0)])
def test_lag_that_lasted_in_a_part_is_proven_and_does_not_fall_below_the_members(
    value: float, members: int, wanted: float
) -> None:
    found = by_a_part(judgement(Verdict.SUSTAINED, value, members=members), POLICY)
    assert (found.verdict, found.value, found.active) == (Verdict.SUSTAINED, wanted, True)


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (judgement(Verdict.CALM, 0.0), Reason.MISSING),
        (judgement(Verdict.UNKNOWN, None), Reason.MISSING),
        (judgement(Verdict.SUSTAINED, 500.0, members=None), Reason.MEMBERS_UNKNOWN),
    ],
)
def test_everything_else_is_unknown(part: Judgement, reason: Reason) -> None:
    found = by_a_part(part, POLICY)
    assert (found.verdict, found.reason, found.value, found.active) == (Verdict.UNKNOWN, reason, None, None)
    assert told(found, POLICY) is None


def test_a_proven_backlog_still_wakes() -> None:
    answer = told(by_a_part(judgement(Verdict.UNKNOWN, None, wakes=True), POLICY), POLICY)
    assert answer is not None
    assert (answer.value, answer.active) == (100.0, True)
