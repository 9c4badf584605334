"""Stabilized answers from the values of the samples alone, so they survive restarts and all replicas agree.

The store calls this linear form with judgments of past instants; `evaluate` has the quadratic form of the definition,
and tests compare the two.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.contract import Judgment, Verdict


def stabilize(judgments: Sequence[Judgment], policy: Policy) -> list[Judgment]:
    """The answers at known instants, from the values that the policy gives at each of them.

    1. *Up*: the least value of the last `scaleUpStabilization` within the current run of sustained instants: the
       first one counts at once, later ones only as far as they lasted.
    2. *Down*: the greatest of those of the last `scaleDownStabilization`, active if any of them was.

    Args:
        judgments: those with a known verdict, each at its own sample time, oldest first. The first answers are right
            only if the judgments cover both windows.
        policy: the two windows.
    """
    if not policy.stabilization_ms:
        return list(judgments)
    answers = []
    # Per instant in the window that can still be the greatest: its time and value, the values falling.
    maxima: deque[tuple[int, float]] = deque()
    active_ms: int | None = None
    for judgment, scale_up_value in zip(judgments, _compute_scale_up(judgments, policy.scale_up_ms), strict=True):
        at_ms = _time_of(judgment)
        while maxima and maxima[-1][1] <= scale_up_value:
            maxima.pop()
        maxima.append((at_ms, scale_up_value))
        while maxima[0][0] < at_ms - policy.scale_down_ms:
            maxima.popleft()
        if judgment.active:
            active_ms = at_ms
        active = active_ms is not None and active_ms >= at_ms - policy.scale_down_ms
        answers.append(replace(judgment, value=maxima[0][1], active=active, scale_up_value=scale_up_value))
    return answers


def _compute_scale_up(judgments: Sequence[Judgment], window_ms: int) -> Iterator[float]:
    """Per instant the least value of the window in the run of sustained instants; a calm one has its own value."""
    minima: deque[tuple[int, float]] = deque()
    for judgment in judgments:
        at_ms, value = _time_of(judgment), judgment.value or 0.0
        if judgment.verdict is Verdict.CALM:
            minima.clear()
            yield value
            continue
        while minima and minima[-1][1] >= value:
            minima.pop()
        minima.append((at_ms, value))
        while minima[0][0] < at_ms - window_ms:
            minima.popleft()
        yield minima[0][1]


def _time_of(judgment: Judgment) -> int:
    """The time of a judgment's newest round, which exists for every known verdict."""
    return judgment.at_ms or 0
