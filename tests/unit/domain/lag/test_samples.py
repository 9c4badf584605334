"""From offsets to lag, by the numbered rules."""

from __future__ import annotations

import pytest

from lagscale.domain.lag.samples import Flag, Offsets, Sample, build_sample

NONE = Flag(0)
CALM = Sample(0, 500)


def answer(start: int, end: int, committed: int | None, high: int | None = None) -> Offsets:
    return Offsets(start, end, committed, end if high is None else high)


@pytest.mark.parametrize(
    ("offsets", "lag", "flags", "lost"),
    [
        (answer(0, 100, 90), 10, NONE, 0),
        (answer(0, 100, 100), 0, NONE, 0),
        (answer(900, 1000, 100), 100, Flag.LOST, 800),
        (answer(1000, 1000, 100), 0, Flag.LOST, 900),
        (answer(900, 1000, 900), 100, NONE, 0),
        (answer(990_000, 1_000_000, None), 10_000, Flag.UNCOMMITTED, 0),
        (answer(70, 70, None), 0, Flag.UNCOMMITTED, 0),
        (answer(0, 20, 500), 0, NONE, 0),
        (answer(0, 90, 95, 100), 0, NONE, 0),
    ],
    ids=[
        "behind",
        "level",
        "below the log start",
        "everything deleted",
        "at the log start",
        "no commit",
        "no commit and no messages",
        "beyond the end in the first sample ever",
        "between the last stable offset and the high watermark",
    ],
)
def test_a_first_sample(offsets: Offsets, lag: int, flags: Flag, lost: int) -> None:
    assert build_sample(offsets, None) == Sample(lag, offsets.end, flags, lost)


def test_beyond_the_end_is_a_read_skew_while_the_end_does_not_fall() -> None:
    assert build_sample(answer(0, 1000, 1005), Sample(0, 1000)) == Sample(0, 1000)


def test_a_commit_that_comes_beyond_the_end_after_a_topic_was_created_again_is_a_reset() -> None:
    uncommitted = build_sample(answer(0, 3, None), CALM, same_id=False, was_recreated=True)
    late = build_sample(answer(0, 3, 50), uncommitted, was_recreated=True)
    assert late == Sample(3, 3, Flag.RESET | Flag.RESET_BEGINS | Flag.UNCOMMITTED)
    assert build_sample(answer(0, 60, 50), late, was_recreated=True) == Sample(10, 60)
    # A group that has a commit on the new topic already is read a little askew, as on any other.
    assert build_sample(answer(0, 60, 61), Sample(10, 60), was_recreated=True) == Sample(0, 60)
    assert build_sample(answer(0, 3, 50), build_sample(answer(0, 3, None), None)) == Sample(0, 3)


def test_beyond_the_end_of_a_topic_created_again_is_a_reset_until_the_end_is_reached() -> None:
    began = build_sample(answer(0, 20, 500), CALM, same_id=False)
    assert began == Sample(20, 20, Flag.UNCOMMITTED | Flag.RESET | Flag.RESET_BEGINS)
    goes_on = build_sample(answer(0, 400, 500), began)
    assert goes_on == Sample(400, 400, Flag.UNCOMMITTED | Flag.RESET)
    assert build_sample(answer(0, 500, 500), goes_on) == Sample(0, 500)


def test_beyond_an_end_that_fell_is_a_reset_under_the_same_id() -> None:
    assert build_sample(answer(0, 20, 500), CALM).flags & Flag.RESET_BEGINS


def test_a_commit_below_the_end_of_a_topic_created_again_counts() -> None:
    assert build_sample(answer(0, 150, 100), CALM, same_id=False) == Sample(50, 150)


def test_a_commit_that_moved_backwards_is_a_rewind() -> None:
    assert build_sample(answer(0, 1000, 300), Sample(0, 1000)) == Sample(700, 1000, Flag.REWIND)
    assert build_sample(answer(0, 1000, 1000), Sample(700, 1000)).flags == NONE


def test_a_first_commit_is_no_rewind() -> None:
    assert build_sample(answer(0, 1000, 0), Sample(1000, 1000, Flag.UNCOMMITTED)).flags == NONE


def test_a_partition_that_is_born_says_so() -> None:
    assert build_sample(answer(0, 50, None), None, first_seen=True).flags == Flag.UNCOMMITTED | Flag.FIRST_SEEN
