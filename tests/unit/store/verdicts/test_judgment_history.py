"""What is remembered of the past is what would be judged anew, whoever looked before, and how far."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from lagscale.domain.verdict.contract import Judgment, Reason, Verdict
from lagscale.store.verdicts.judgment_history import EMPTY_HISTORY, JudgmentHistory, JudgmentSource, extend_history

#: Seconds since the first sample, and whether the verdict was known there.
TIMES = st.dictionaries(st.integers(0, 600), st.booleans(), max_size=50)


@dataclass(frozen=True)
class Lookback:
    """One look back: how long after the one before, how long the newest known instant counts, and how far behind it."""

    later: int
    held_seconds: int
    span: int
    retained: int
    first: int


LOOKBACKS = st.lists(
    st.builds(
        Lookback,
        st.integers(0, 150),
        st.sampled_from([0, 60]),
        st.sampled_from([0, 25, 60, 300, 900]),
        st.sampled_from([0, 325]),
        st.sampled_from([1, 3, 256]),
    ),
    min_size=1,
    max_size=8,
)


def instants(determined: dict[int, bool], first: int) -> JudgmentSource:
    async def times(since_ms: int, until_ms: int) -> list[int]:
        return sorted((at * 1000 for at in determined if since_ms <= at * 1000 <= until_ms), reverse=True)

    async def judge(chosen: Sequence[int]) -> list[Judgment]:
        return [judgment(at, determined[at // 1000]) for at in chosen]

    return JudgmentSource(times, judge, first)


def judgment(at_ms: int, determined: bool) -> Judgment:
    if determined:
        return Judgment(Verdict.CALM, Reason.NO_BREACH, 0.0, False, at_ms, at_ms)
    return Judgment(Verdict.UNKNOWN, Reason.MISSING, None, None, at_ms, at_ms)


def needed_since_of(lookback: Lookback, until_ms: int) -> Callable[[int | None], int]:
    def needed_since(determined_ms: int | None) -> int:
        last = until_ms - lookback.held_seconds * 1000
        return (max(last, determined_ms) if determined_ms is not None else last) - lookback.span * 1000

    return needed_since


@given(TIMES, LOOKBACKS)
def test_a_look_finds_each_instant_that_it_needs_once_and_newest_first(
    determined: dict[int, bool], lookbacks: list[Lookback]
) -> None:
    history, until_ms = EMPTY_HISTORY, 0
    for lookback in lookbacks:
        until_ms += lookback.later * 1000
        needed_since = needed_since_of(lookback, until_ms)
        history = asyncio.run(
            extend_history(
                instants(determined, lookback.first), history, until_ms, needed_since, lookback.retained * 1000
            )
        )
        expected = _expected(determined, needed_since, until_ms)
        found = [one.at_ms for one in history.determined if one.at_ms is not None and one.at_ms <= until_ms]
        assert found == sorted(set(found), reverse=True)
        last = found[0] if found else None
        assert [at for at in found if at >= needed_since(last)] == expected
        assert history.since_ms <= needed_since(last)


def _expected(determined: dict[int, bool], needed_since: Callable[[int | None], int], until_ms: int) -> list[int]:
    visible = [
        at * 1000
        for at in sorted(determined, reverse=True)
        if determined[at] and needed_since(None) <= at * 1000 <= until_ms
    ]
    if not visible:
        return []
    floor = needed_since(visible[0])
    return [at * 1000 for at in sorted(determined, reverse=True) if determined[at] and floor <= at * 1000 <= until_ms]


def test_a_span_that_was_judged_anew_is_not_remembered_twice() -> None:
    determined = dict.fromkeys(range(0, 200, 10), True)
    near = asyncio.run(extend_history(instants(determined, 256), EMPTY_HISTORY, 180_000, lambda _: 165_000, 0))
    assert near == JudgmentHistory(165_000, 180_000, tuple(judgment(at, True) for at in (180_000, 170_000)))
    far = asyncio.run(extend_history(instants(determined, 3), near, 190_000, lambda _: 0, 0))
    assert [one.at_ms for one in far.determined] == [at * 1000 for at in range(190, -1, -10)]
