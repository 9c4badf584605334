"""Judgements of past instants, remembered: what stabilised and held answers are made of. For `postgres`.

Samples do not change, so neither do judgements of the past; what is remembered can be lost at any time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from lagscale.domain.verdict.contract import Judgement

#: Instants younger than this are judged again: a late row may still change them.
_LATE_ROWS_MS: Final = 120_000
#: Instants judged in one statement.
_GREATEST_CHUNK: Final = 256


@dataclass(frozen=True, slots=True)
class Instants:
    """One monitor's sample times, newest first, and its judgements at them, each with only the samples until then.

    `first` is how many are judged at once, to begin with.
    """

    times: Callable[[int, int], Awaitable[list[int]]]
    judge: Callable[[Sequence[int]], Awaitable[list[Judgement]]]
    first: int = 256


@dataclass(frozen=True, slots=True)
class Past:
    """The known judgements, newest first, of all sample times from `since_ms` to `upto_ms`."""

    since_ms: int
    upto_ms: int
    known: tuple[Judgement, ...]


NOTHING: Final = Past(0, 0, ())


async def look_back(
    instants: Instants, past: Past, until_ms: int, reach: Callable[[int | None], int], keep_ms: int
) -> Past:
    """Judge the sample times up to an instant that are not remembered, newest first, as far back as is needed.

    Args:
        instants: of the monitor.
        past: what is remembered.
        until_ms: the newest instant of interest.
        reach: how far back is needed, by the newest known instant as soon as there is one; never further back with one
            than without.
        keep_ms: how far behind `until_ms` to remember more than is needed now.
    """
    settled = min(past.upto_ms - _LATE_ROWS_MS, until_ms)
    seen, known = await _judged(instants, (max(settled + 1, reach(None)), until_ms), reach, None)
    last = _last(known)
    if past is NOTHING or reach(last) > settled:
        since = reach(last)
    else:
        known += [judgement for judgement in past.known if (judgement.at_ms or 0) <= settled]
        # What was asked before may lie wholly within what was judged anew.
        last, since = _last(known), min(past.since_ms, settled + 1)
        if reach(last) < since:
            _, older = await _judged(instants, (reach(last), since - 1), reach, last)
            known += older
            since = reach(_last(known))
    since = max(since, min(reach(_last(known)), until_ms - keep_ms))
    return Past(since, max(seen, past.upto_ms), tuple(one for one in known if (one.at_ms or 0) >= since))


async def _judged(
    instants: Instants, span: tuple[int, int], reach: Callable[[int | None], int], last_ms: int | None
) -> tuple[int, list[Judgement]]:
    """The newest sample time of a span, and what was known in it as far back as is needed; newest first."""
    left = await instants.times(*span)
    newest = left[0] if left else 0
    known: list[Judgement] = []
    size = instants.first
    while chunk := [at for at in left[:size] if at >= reach(last_ms)]:
        known += [judgement for judgement in await instants.judge(chunk) if judgement.value is not None]
        last_ms = _last(known) if last_ms is None else last_ms
        left, size = left[size:], min(2 * size, _GREATEST_CHUNK)
    return newest, known


def _last(known: Sequence[Judgement]) -> int | None:
    return known[0].at_ms if known else None
