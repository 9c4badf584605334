"""The running windows give what their definition gives, and a replica that begins later agrees."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.contract import Judgment, Reason, Verdict
from lagscale.domain.verdict.stabilization import stabilize

POLICY = parse_policy({})
VALUES = st.lists(
    st.tuples(st.integers(1, 40), st.sampled_from([0.0, 0.0, 1.0, 2.0, 3.0, 8.0]), st.booleans()), max_size=40
)
WINDOWS = st.sampled_from([0, 1, 20, 40, 90])


def judgments(steps: list[tuple[int, float, bool]]) -> list[Judgment]:
    at, made = 0, []
    for step, value, active in steps:
        at += step
        # A calm instant may have a value, and a sustained one none.
        verdict = Verdict.CALM if value in {0.0, 1.0} and active else Verdict.SUSTAINED
        made.append(Judgment(verdict, Reason.LASTED, value, active or value > 0, at * 1000, at * 1000, raw=value))
    return made


def by_definition(known: list[Judgment], policy: Policy) -> tuple[float, bool]:
    """The answer at the last instant, word by word."""

    def at(judgment: Judgment) -> int:
        return judgment.at_ms or 0

    def up(instant: Judgment) -> float:
        if instant.verdict is Verdict.CALM:
            return instant.value or 0.0
        run = [one for one in known if at(one) <= at(instant)]
        since = max((at(one) for one in run if one.verdict is Verdict.CALM), default=-1)
        values = [one.value or 0.0 for one in run if at(one) >= at(instant) - policy.scale_up_ms and at(one) > since]
        return min(values, default=0.0)

    window = [one for one in known if at(one) >= at(known[-1]) - policy.scale_down_ms]
    return max(map(up, window)), any(one.active for one in window)


@given(VALUES, WINDOWS, WINDOWS)
def test_each_answer_is_what_the_windows_say(steps: list[tuple[int, float, bool]], up: int, down: int) -> None:
    policy = replace(POLICY, scale_up_ms=up * 1000, scale_down_ms=down * 1000)
    known = judgments(steps)
    for number, answer in enumerate(stabilize(known, policy)):
        assert (answer.value, answer.active) == by_definition(known[: number + 1], policy)


@given(VALUES, WINDOWS, WINDOWS)
def test_who_looks_back_by_the_windows_only_agrees(steps: list[tuple[int, float, bool]], up: int, down: int) -> None:
    policy = replace(POLICY, scale_up_ms=up * 1000, scale_down_ms=down * 1000)
    known = judgments(steps)
    for number, answer in enumerate(stabilize(known, policy)):
        since = (known[number].at_ms or 0) - policy.stabilization_ms
        seen = [one for one in known[: number + 1] if (one.at_ms or 0) >= since]
        assert stabilize(seen, policy)[-1] == answer


@given(VALUES, WINDOWS, WINDOWS)
def test_stabilized_values_are_values_that_were_there(steps: list[tuple[int, float, bool]], up: int, down: int) -> None:
    policy = replace(POLICY, scale_up_ms=up * 1000, scale_down_ms=down * 1000)
    known = judgments(steps)
    for number, answer in enumerate(stabilize(known, policy)):
        assert answer.value in {one.value for one in known[: number + 1]}
        assert answer.raw == known[number].value
