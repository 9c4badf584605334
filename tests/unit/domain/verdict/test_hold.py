"""A part of the topics proves lag that lasted, and no calm."""

from __future__ import annotations

import pytest

from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.verdict.contract import Judgment, Reason, Verdict
from lagscale.domain.verdict.hold import apply_partial_coverage, choose_answer

POLICY = parse_policy({"targetLag": "100"})


def judgment(
    verdict: Verdict, value: float | None, *, members: int | None = 2, activates_from_zero: bool = False
) -> Judgment:
    active = None if value is None else value > 0
    return Judgment(
        verdict, Reason.LASTED, value, active, 1, 2, members=members, activates_from_zero=activates_from_zero
    )


@pytest.mark.parametrize(("value", "members", "wanted"), [(500.0, 2, 500.0), (150.0, 2, 200.0), (150.0, 0, 150.0)])
def test_lag_that_lasted_in_a_part_is_proven_and_does_not_fall_below_the_members(
    value: float, members: int, wanted: float
) -> None:
    found = apply_partial_coverage(judgment(Verdict.SUSTAINED, value, members=members), POLICY)
    assert (found.verdict, found.value, found.active) == (Verdict.SUSTAINED, wanted, True)


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (judgment(Verdict.CALM, 0.0), Reason.MISSING),
        (judgment(Verdict.UNKNOWN, None), Reason.MISSING),
        (judgment(Verdict.SUSTAINED, 500.0, members=None), Reason.MEMBERS_UNKNOWN),
    ],
)
def test_everything_else_is_unknown(part: Judgment, reason: Reason) -> None:
    found = apply_partial_coverage(part, POLICY)
    assert (found.verdict, found.reason, found.value, found.active) == (Verdict.UNKNOWN, reason, None, None)
    assert choose_answer(found, POLICY) is None


def test_a_proven_backlog_still_wakes() -> None:
    answer = choose_answer(
        apply_partial_coverage(judgment(Verdict.UNKNOWN, None, activates_from_zero=True), POLICY), POLICY
    )
    assert answer is not None
    assert (answer.value, answer.active) == (100.0, True)
