"""Rows from polls: births, absent and recreated topics, shrinking metadata, late answers."""

from __future__ import annotations

import itertools

from lagscale.domain.lag.rounds import Note, SampleRow
from lagscale.domain.lag.samples import Flag, Offsets
from lagscale.store.samples.write import TargetBaseline
from services.scraper.polling.round import NewRow, PolledRound, build_next_row

STEP = 1000
STALE = 5 * STEP


class Target:
    """One target over time: what was stored is what the next round stands on."""

    def __init__(self) -> None:
        self.before = TargetBaseline(None, 0, None)
        self.clock = itertools.count(1_700_000_000_000, STEP)

    def poll(self, *offsets: Offsets | None, topic_id: str | None = "id-1", limitation: str = "") -> SampleRow:
        polled = PolledRound(next(self.clock), topic_id, offsets, STEP, STALE, limitation, None, None, 3, 8)
        made = build_next_row(self.before, polled)
        assert made is not None
        self._store(made)
        return made.row

    def _store(self, made: NewRow) -> None:
        topic_id = made.topic_id if made.new_id else self.before.topic_id
        self.before = TargetBaseline(topic_id, made.row.round.incarnation, made.row)


def at(commit: int | None, end: int, start: int = 0) -> Offsets:
    return Offsets(start, end, commit, end)


def lags(row: SampleRow) -> list[int | None]:
    return [None if sample is None else sample.lag for sample in row.round.samples]


def test_the_first_row_proves_no_birth() -> None:
    row = Target().poll(at(3, 10))
    assert lags(row) == [7]
    sample = row.round.samples[0]
    assert sample is not None
    assert not sample.flags & Flag.FIRST_SEEN
    assert row.markers.coverage_age == 0


def test_a_partition_that_joins_later_is_born() -> None:
    target = Target()
    target.poll(at(3, 10))
    row = target.poll(at(3, 10), at(None, 4))
    assert row.round.samples[1] is not None
    assert row.round.samples[1].flags == Flag.FIRST_SEEN | Flag.UNCOMMITTED


def test_a_partition_that_metadata_does_not_name_any_more_is_missing() -> None:
    target = Target()
    target.poll(at(3, 10), at(5, 10))
    row = target.poll(at(4, 10))
    assert lags(row) == [6, None]
    assert row.markers.parts == 2
    assert row.markers.total_lag == 11


def test_a_partition_that_could_not_be_read_costs_the_others_nothing() -> None:
    target = Target()
    target.poll(at(3, 10), at(5, 10))
    row = target.poll(None, at(6, 10))
    assert lags(row) == [None, 4]
    carried = row.newest(0)
    assert carried is not None
    assert (carried.sample.lag, carried.age_ms) == (7, STEP)


def test_a_topic_never_seen_is_zero_partitions_at_once() -> None:
    row = Target().poll(topic_id=None)
    assert row.round.samples == ()
    assert row.round.notes == Note.NO_TOPIC
    assert row.round.absent_age_ms == 0


def test_a_topic_that_vanishes_is_missing_until_it_has_been_absent_for_the_stale_time() -> None:
    target = Target()
    target.poll(at(3, 10))
    rows = [target.poll(topic_id=None) for _ in range(7)]
    assert [row.round.absent_age_ms for row in rows] == [n * STEP for n in range(7)]
    assert [lags(row) for row in rows[:5]] == [[None]] * 5
    assert [row.round.notes for row in rows[5:]] == [Note.NO_TOPIC] * 2
    assert lags(rows[5]) == []


def test_a_topic_that_comes_back_under_its_id_goes_on() -> None:
    target = Target()
    target.poll(at(3, 10))
    target.poll(topic_id=None)
    row = target.poll(at(4, 10))
    assert (row.round.incarnation, lags(row), row.round.absent_age_ms) == (0, [6], None)
    assert row.round.samples[0] is not None
    assert row.round.samples[0].flags == Flag(0)


def test_a_topic_created_again_begins_an_epoch_and_a_commit_beyond_its_end_is_a_reset() -> None:
    target = Target()
    target.poll(at(90, 100))
    row = target.poll(at(90, 5), topic_id="id-2")
    sample = row.round.samples[0]
    assert row.round.incarnation == 1
    assert sample is not None
    assert sample.flags & Flag.RESET
    assert sample.flags & Flag.RESET_BEGINS
    assert sample.lag == 5
    row = target.poll(at(90, 6), topic_id="id-2")
    assert row.round.incarnation == 1
    assert row.round.samples[0] is not None
    assert row.round.samples[0].flags == Flag.RESET | Flag.UNCOMMITTED


def test_a_topic_created_after_its_absence_was_told_is_born() -> None:
    target = Target()
    target.poll(topic_id=None)
    row = target.poll(at(None, 15))
    assert row.round.samples[0] is not None
    assert row.round.samples[0].flags == Flag.FIRST_SEEN | Flag.UNCOMMITTED
    assert row.round.incarnation == 0


def test_partitions_outside_the_limitation_have_no_sample_and_do_not_count() -> None:
    row = Target().poll(at(0, 5), at(0, 6), at(0, 7), at(0, 8), limitation="1, 3-9")
    assert lags(row) == [None, 6, None, 8]
    assert (row.markers.parts, row.round.excluded) == (2, frozenset({0, 2}))


def test_a_row_keeps_when_its_ends_were_read_and_an_absent_topic_has_none() -> None:
    target = Target()
    row = target.poll(at(3, 10))
    assert (row.round.ends_asked_ms, row.round.ends_answered_ms) == (3, 8)
    row = target.poll(topic_id=None)
    assert (row.round.ends_asked_ms, row.round.ends_answered_ms) == (None, None)


def test_a_round_that_is_not_later_makes_no_row() -> None:
    target = Target()
    target.poll(at(3, 10))
    late = PolledRound(1_700_000_000_000, "id-1", (at(3, 10),), STEP, STALE)
    assert build_next_row(target.before, late) is None
