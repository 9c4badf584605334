"""What is remembered of the past is what would be judged anew, whoever looked before, and how far."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from lagscale.domain.verdict.contract import Judgement, Reason, Verdict
from lagscale.store.verdicts.judgment_history import NOTHING, Instants, Past, look_back

#: Seconds since the first sample, and whether the verdict was known there.
TIMES = st.dictionaries(st.integers(0, 600), st.booleans(), max_size=50)


@dataclass(frozen=True)
class Look:
    """One look back: how long after the one before, how long the newest known instant counts, and how far behind it."""

    later: int
    held: int
    span: int
    kept: int
    first: int


LOOKS = st.lists(
    st.builds(
        Look,
        st.integers(0, 150),
        st.sampled_from([0, 60]),
        st.sampled_from([0, 25, 60, 300, 900]),
        st.sampled_from([0, 325]),
        st.sampled_from([1, 3, 256]),
    ),
    min_size=1,
    max_size=8,
)


def instants(known: dict[int, bool], first: int) -> Instants:
    async def times(since_ms: int, until_ms: int) -> list[int]:
        return sorted((at * 1000 for at in known if since_ms <= at * 1000 <= until_ms), reverse=True)

    async def judge(chosen: Sequence[int]) -> list[Judgement]:
        return [judgement(at, known[at // 1000]) for at in chosen]

    return Instants(times, judge, first)


def judgement(at_ms: int, known: bool) -> Judgement:
    if known:
        return Judgement(Verdict.CALM, Reason.NO_BREACH, 0.0, False, at_ms, at_ms)
    return Judgement(Verdict.UNKNOWN, Reason.MISSING, None, None, at_ms, at_ms)


def reach_of(look: Look, until_ms: int) -> Callable[[int | None], int]:
    def reach(known_ms: int | None) -> int:
        last = until_ms - look.held * 1000
        return (max(last, known_ms) if known_ms is not None else last) - look.span * 1000

    return reach


@given(TIMES, LOOKS)
def test_a_look_finds_each_instant_that_it_needs_once_and_newest_first(
    known: dict[int, bool], looks: list[Look]
) -> None:
    past, until_ms = NOTHING, 0
    for look in looks:
        until_ms += look.later * 1000
        reach = reach_of(look, until_ms)
        past = asyncio.run(look_back(instants(known, look.first), past, until_ms, reach, look.kept * 1000))
        wanted = _wanted(known, reach, until_ms)
        found = [one.at_ms for one in past.known if one.at_ms is not None and one.at_ms <= until_ms]
        assert found == sorted(set(found), reverse=True)
        last = found[0] if found else None
        assert [at for at in found if at >= reach(last)] == wanted
        assert past.since_ms <= reach(last)


def _wanted(known: dict[int, bool], reach: Callable[[int | None], int], until_ms: int) -> list[int]:
    visible = [at * 1000 for at in sorted(known, reverse=True) if known[at] and reach(None) <= at * 1000 <= until_ms]
    if not visible:
        return []
    floor = reach(visible[0])
    return [at * 1000 for at in sorted(known, reverse=True) if known[at] and floor <= at * 1000 <= until_ms]


def test_a_span_that_was_judged_anew_is_not_remembered_twice() -> None:
    known = dict.fromkeys(range(0, 200, 10), True)
    near = asyncio.run(look_back(instants(known, 256), NOTHING, 180_000, lambda _: 165_000, 0))
    assert near == Past(165_000, 180_000, tuple(judgement(at, True) for at in (180_000, 170_000)))
    far = asyncio.run(look_back(instants(known, 3), near, 190_000, lambda _: 0, 0))
    assert [one.at_ms for one in far.known] == [at * 1000 for at in range(190, -1, -10)]
