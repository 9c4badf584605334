"""What the writer marks on a row from the row before."""

from __future__ import annotations

import pytest

from lagscale.domain.lag.rounds import MAX_AGE_MS, Carried, SampleRow, TargetRound, build_row, is_first_seen
from lagscale.domain.lag.samples import Flag, Sample

INTERVAL = 10_000


def row(
    previous: SampleRow | None, at: int, *samples: Sample | None, incarnation: int = 1, members: int | None = None
) -> SampleRow:
    age = None if members is None else 0
    return build_row(previous, TargetRound(at * 1000, incarnation, samples, members=members, members_age_ms=age))


def test_a_missing_partition_keeps_its_newest_sample_with_its_age() -> None:
    first = row(None, 0, Sample(5, 10), Sample(0, 3))
    third = row(row(first, 10, None, Sample(0, 3)), 30, None, Sample(0, 3))
    assert third.carried == (Carried(Sample(5, 10), 30_000), None)
    assert (third.markers.oldest_age, third.markers.total_lag, third.markers.never) == (30_000, 5, 0)


def test_a_carried_sample_says_that_it_is_of_an_earlier_id() -> None:
    later = row(row(None, 0, Sample(5, 10)), 10, None, incarnation=2)
    assert later.carried[0] == Carried(Sample(5, 10, Flag.RECREATED), 10_000)
    assert later.markers.coverage_age is None


def test_a_partition_never_sampled_is_counted() -> None:
    assert row(None, 0, Sample(5, 10), None).markers.never == 1


def test_work_is_an_advance_under_one_id_also_over_a_hole() -> None:
    first = row(None, 0, Sample(0, 10))
    assert row(first, 10, Sample(0, 11)).markers.progress_age == 0
    assert row(row(first, 10, None), 300, Sample(0, 11)).markers.progress_age == 0
    assert row(row(first, 10, Sample(0, 11)), 20, Sample(3, 14)).markers.progress_age == 10_000
    assert row(first, 10, Sample(0, 11), incarnation=2).markers.progress_age is None


@pytest.mark.parametrize("flag", [Flag.UNCOMMITTED, Flag.LOST, Flag.RESET])
def test_an_advance_of_the_log_start_is_no_work(flag: Flag) -> None:
    assert row(row(None, 0, Sample(5, 10)), 10, Sample(0, 10, flag)).markers.progress_age is None


def test_knowledge_is_as_old_as_the_youngest_first_sample() -> None:
    first = row(None, 0, Sample(0, 1))
    assert row(first, 10, Sample(0, 1)).markers.coverage_age == 10_000
    assert row(first, 10, Sample(0, 1), Sample(0, 1)).markers.coverage_age == 0
    assert row(first, 10, Sample(0, 1), Sample(0, 1, Flag.FIRST_SEEN)).markers.coverage_age == 10_000
    assert row(None, 0, Sample(0, 1, Flag.FIRST_SEEN)).markers.coverage_age == MAX_AGE_MS


def test_members_read_earlier_are_kept_with_their_age() -> None:
    later = row(row(None, 0, Sample(0, 1), members=4), 25, Sample(0, 1))
    assert (later.round.members, later.round.members_age_ms) == (4, 25_000)


def test_births_need_recent_metadata() -> None:
    first = row(None, 0, Sample(0, 1))
    assert is_first_seen(first, 25_000, INTERVAL, 1)
    assert not is_first_seen(first, 25_001, INTERVAL, 1)
    assert not is_first_seen(first, 10_000, INTERVAL, 0)
    assert not is_first_seen(None, 10_000, INTERVAL, 0)


def test_a_round_must_be_later_than_the_one_before() -> None:
    with pytest.raises(ValueError, match="later"):
        row(row(None, 10, Sample(0, 1)), 10, Sample(0, 1))
