"""Time lag against the truth: random producers, holes, restarts, slow answers, clocks a little wrong, topics cut."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import Counter
from dataclasses import replace
from statistics import median

import pytest

from lagscale.domain.lag.time_lag import NO_WAIT, TimeLag, compute_time_lag, select_comparable
from tests.fuzz.timelag_cases import MS, PRODUCERS, Case, case

pytestmark = pytest.mark.fuzz

CASES = max(10_000, int(os.environ.get("LAGSCALE_FUZZ_EXAMPLES", "0")))
STEADY_CASES = 2_000


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """The numbered cases: a mismatch once seen stays seen."""
    return [case(seed) for seed in range(CASES)]


def judged(one: Case) -> TimeLag:
    found = compute_time_lag(one.ends, one.position)
    assert found is not None
    return found


def holds(one: Case, found: TimeLag) -> bool:
    """Whether the truth lies within the bounds."""
    return found.lower_ms * MS <= one.truth and (found.upper_ms is None or one.truth <= found.upper_ms * MS)


def bracket(one: Case) -> tuple[int, int] | None:
    """Indices of the stored ends before and after the first unread message; None where there is no end before."""
    first = len(one.ends) - len(select_comparable(one.ends))
    after = bisect_right(one.ends, one.position, lo=first, key=lambda read: read.end)
    return (after - 1, after) if first < after < len(one.ends) else None


def test_the_truth_lies_within_the_bounds_in_every_case(cases: list[Case]) -> None:
    wrong = {seed: one for seed, one in enumerate(cases) if not holds(one, judged(one))}
    assert wrong == {}


def test_the_estimate_lies_within_the_bounds_in_every_case(cases: list[Case]) -> None:
    for one in cases:
        found = judged(one)
        assert found.lower_ms <= found.estimate_ms
        assert found.upper_ms is None or found.estimate_ms <= found.upper_ms


def test_without_a_missing_sample_the_bounds_are_as_wide_as_one_interval_and_its_requests(cases: list[Case]) -> None:
    seen = 0
    for one in cases:
        between = bracket(one)
        if between is None or one.numbers[between[1]] - one.numbers[between[0]] != 1:
            continue
        older, newer = (one.ends[index] for index in between)
        found = judged(one)
        assert found.upper_ms is not None
        # From one round's question to the next round's answer; just the interval where answers take no time.
        assert found.upper_ms - found.lower_ms <= newer.at_ms + newer.answered_ms - older.at_ms - older.asked_ms
        seen += 1
    assert seen > CASES / 4


def test_where_answers_take_no_time_and_none_is_missing_the_bounds_are_no_wider_than_one_interval() -> None:
    seen = 0
    for seed in range(CASES):
        one = case(seed)
        between = bracket(one)
        if not one.instant or between is None or one.numbers[between[1]] - one.numbers[between[0]] != 1:
            continue
        # The watch adds the millisecond that a clock cuts off, but here it was read to the microsecond.
        exact = replace(one, ends=tuple(replace(read, asked_ms=0, answered_ms=0) for read in one.ends))
        found = judged(exact)
        assert holds(exact, found)
        assert found.upper_ms is not None
        assert (found.upper_ms - found.lower_ms) * MS <= one.interval
        seen += 1
    assert seen > CASES / 20


def test_unknown_beginnings_are_told_as_at_least(cases: list[Case]) -> None:
    for one in cases:
        waits = one.position < one.ends[-1].end
        assert (judged(one).upper_ms is None) == (waits and bracket(one) is None)
        assert (judged(one) == NO_WAIT) or waits


@pytest.mark.parametrize("rate", [5, 10, 50, 500])
def test_for_steady_producers_the_median_error_is_at_most_a_tenth_of_the_interval(rate: float) -> None:
    errors = []
    for seed in range(STEADY_CASES):
        one = case(seed, "steady", rate)
        between = bracket(one)
        if between is not None and one.numbers[between[1]] - one.numbers[between[0]] == 1:
            errors.append(abs(judged(one).estimate_ms * MS - one.truth) / one.interval)
    assert len(errors) > STEADY_CASES / 3
    assert median(errors) <= 0.1


def test_the_cases_are_of_every_kind(cases: list[Case]) -> None:
    kinds = Counter(one.kind for one in cases)
    assert {kind for kind in PRODUCERS if kinds[kind] < CASES / 10} == set()
    seen = {
        "at least": sum(judged(one).upper_ms is None for one in cases),
        "nothing waits": sum(judged(one) == NO_WAIT for one in cases),
        "a hole between": sum(
            (between := bracket(one)) is not None and one.numbers[between[1]] - one.numbers[between[0]] > 1
            for one in cases
        ),
        "another id": sum(one.ends[0].incarnation != one.ends[-1].incarnation for one in cases),
        "a fall": sum(
            0 < len(select_comparable(one.ends)) < len(one.ends) and one.ends[-1].incarnation == 0 for one in cases
        ),
        "younger than the stamp": sum(one.truth == 0 and one.position < one.ends[-1].end for one in cases),
    }
    assert {name: count for name, count in seen.items() if count < CASES / 200} == {}


@pytest.mark.parametrize("forgotten", ["asked", "answered", "falls and ids", "the end that equals the position"])
def test_the_cases_catch_what_a_simpler_rule_forgets(cases: list[Case], forgotten: str) -> None:
    def simpler(one: Case) -> TimeLag | None:
        if forgotten == "asked":  # Read when the answer was there.
            return compute_time_lag([replace(read, asked_ms=read.answered_ms) for read in one.ends], one.position)
        if forgotten == "answered":  # Read at the stamp.
            return compute_time_lag([replace(read, asked_ms=0, answered_ms=0) for read in one.ends], one.position)
        if forgotten == "falls and ids":
            ends = [max(read.end for read in one.ends[: index + 1]) for index in range(len(one.ends))]
            kept = [replace(read, end=end, incarnation=0) for read, end in zip(one.ends, ends, strict=True)]
            return compute_time_lag(kept, one.position)
        return compute_time_lag(one.ends, max(one.position - 1, 0))

    assert sum((found := simpler(one)) is not None and not holds(one, found) for one in cases) > 3
