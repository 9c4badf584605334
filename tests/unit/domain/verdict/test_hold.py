"""Some of the topics prove sustained lag, but not calm; and the request of a frozen answer."""

from __future__ import annotations

import pytest

from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.verdict.contract import Judgment, Reason, Verdict, VerdictRequest
from lagscale.domain.verdict.hold import (
    FREEZE_LOOKBACK_MS,
    apply_partial_coverage,
    build_frozen_request,
    choose_answer,
)

POLICY = parse_policy({"targetLag": "100"})
AT_MS = 1_700_000_000_000


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


def test_the_answer_is_asked_for_as_of_the_freeze() -> None:
    policy = parse_policy({"holdSeconds": "0"})
    asked = build_frozen_request(VerdictRequest(1, (2,), policy), AT_MS)
    assert (asked.upto_ms, asked.judged_at_ms, asked.policy.hold_ms) == (AT_MS, AT_MS, FREEZE_LOOKBACK_MS)
    assert policy.hold_ms == 0
