"""Stabilised answers from the values of the samples alone: a restart forgets nothing, and all replicas agree.

Pure; the adapters of the store call it with judgements of past instants.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.contract import Judgement


def stabilised(known: Sequence[Judgement], policy: Policy) -> list[Judgement]:
    """The answers at known instants, from the values that the policy gives at each of them.

    1. *Up*: the least value of the last `scaleUpStabilization` within the present run of values above 0: the first
       comes at once, later it rises only to what has held.
    2. *Down*: the greatest of those of the last `scaleDownStabilization`, active if any of them was.

    Args:
        known: judgements with a known verdict, each at its own sample time, oldest first. Those at the beginning are
            right only if the two windows lie within what is given.
        policy: the two windows.
    """
    if not policy.stabilisation_ms:
        return list(known)
    answers = []
    # Per instant in the window that can still be the greatest: its time and value, the values falling.
    greatest: deque[tuple[int, float]] = deque()
    active_ms: int | None = None
    for judgement, up in zip(known, _risen(known, policy.scale_up_ms), strict=True):
        at_ms = _time(judgement)
        while greatest and greatest[-1][1] <= up:
            greatest.pop()
        greatest.append((at_ms, up))
        while greatest[0][0] < at_ms - policy.scale_down_ms:
            greatest.popleft()
        if judgement.active:
            active_ms = at_ms
        active = active_ms is not None and active_ms >= at_ms - policy.scale_down_ms
        answers.append(replace(judgement, value=greatest[0][1], active=active, risen=up))
    return answers


def _risen(known: Sequence[Judgement], window_ms: int) -> Iterator[float]:
    """Per instant the least value of the window since the values are above 0."""
    least: deque[tuple[int, float]] = deque()
    for judgement in known:
        at_ms, value = _time(judgement), judgement.value or 0.0
        if value == 0:
            least.clear()
            yield 0.0
            continue
        while least and least[-1][1] >= value:
            least.pop()
        least.append((at_ms, value))
        while least[0][0] < at_ms - window_ms:
            least.popleft()
        yield least[0][1]


def _time(judgement: Judgement) -> int:
    """The time of a judgement's newest round, which every known one has."""
    return judgement.at_ms or 0
