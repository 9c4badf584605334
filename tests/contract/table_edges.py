"""Histories at the edges of the SQL: each was added for a single-token mutant that no other history told of."""

from __future__ import annotations

from dataclasses import replace

from lagscale.domain.lag.samples import Offsets
from lagscale.domain.lag.time_lag import TimeLag
from lagscale.domain.verdict.contract import Reason
from tests.contract.case import Case, calm, sustained, unknown
from tests.contract.histories import History, offsets
from tests.contract.random_histories import marked

LONG = {"sustainSeconds": "120"}
STUCK = {"stuckAfterSeconds": "60"}
WORK = {"workSeconds": "60"}
EARLIEST = {"offsetResetPolicy": "earliest"}


def no_targets() -> History:
    history = History()
    history.topics.clear()
    return history


def one_of_two_works(*, first: int = 1, second: int = 2) -> History:
    """Topic `first` moved once, long ago; topic `second` moves all the time."""
    history = History()
    for at in range(0, 301, 15):
        history.round(at, offsets(1000 + min(at, 15), 1000 + min(at, 15)), topic=first, members=2)
        history.round(at, offsets(1000 + at, 1000 + at), topic=second, members=2)
    return history


def moved_at(last: float, *, until: int) -> History:
    """Topic 2 moved with its newest round at `last`; topic 1 stands still and is polled until `until`."""
    history = History()
    for at in range(0, until + 1, 15):
        history.round(at, 0, topic=1)
        if at <= last:
            end = 1000 + (at == last)
            history.round(at, offsets(end, end), topic=2)
    return history


def known_late(*, first: int, until: int) -> History:
    """Topic 2 is known since `first` and not polled again; topic 1 all the time."""
    history = History().rounds(first - 120, until, 0)
    history.round(first, 0, topic=2)
    return history


def read_at_0(at: float, lag: int) -> History:
    """Members are 0 as of t = 0 and not read again."""
    history = History().rounds(0, 0, 0)
    for then in range(15, 180, 15):
        history.round(then, 0, members=None)
    history.round(at, lag, members=None)
    return history


def stuck_beside(lag: int, *, seen: bool = True) -> History:
    """A partition that is stuck with so much beside one that is read, and 150 behind."""
    history = History()
    for at in range(-120, 121, 15):
        own = offsets(1000, 1000 - lag)
        history.round(at, own if seen or at < 120 else None, offsets(2000 + at, 1850 + at), members=2)
    return history


def gone_beside_stuck(*others: int) -> History:
    """One partition is stuck, one was read too slowly and is not seen after t = 90, others are so far behind."""
    history = History()
    for at in range(-120, 136, 15):
        slow = offsets(2000 + at, 1850 + at) if at <= 90 else None
        history.round(at, offsets(1000, 500), slow, *(offsets(3000 + at, 3000 + at - lag) for lag in others), members=2)
    return history


def standing(change: int, *after: Offsets, gap: int = 15) -> History:
    """The commit stands at 500 of 1000 from t = 0; what comes at `change` and every 15 s after it is given."""
    history = History()
    for at in range(0, change - gap + 1, 15):
        history.round(at, offsets(1000, 500), members=2)
    for number, given in enumerate(after):
        history.round(change + 15 * number, given, members=2)
    return history


def interleaved() -> History:
    """Two topics 150 behind, neither for long without a gap: the samples of both together have none."""
    history = History().known(topic=1).known(topic=2)
    history.round(0, 150, topic=1)
    history.round(0, None, topic=2)
    for at in (15, 30, 45):
        history.round(at, None, topic=1)
        history.round(at, 150, topic=2)
    history.round(60, 150, topic=1, produced=200)
    history.round(60, 150, topic=2)
    return history


def taken_over() -> History:
    """Topic 1 is calm again in the round in which topic 2 is as far behind as topic 1 was before."""
    history = History().known(topic=1).known(topic=2)
    for at in range(0, 76, 15):
        history.round(at, 150, topic=1)
        history.round(at, 0, topic=2)
    history.round(90, 0, topic=1)
    history.round(90, 150, topic=2)
    return history


def hole_behind_another() -> History:
    """One partition is up all the time since calm; the other is not seen for a minute, and then up."""
    history = History().known(0, 0)
    history.round(0, 0, 0)
    for at in (15, 30, 45):
        history.round(at, None, 150)
    history.round(60, 150, 150, produced=200, members=1)
    return history


def late_rounds() -> History:
    """No round for a minute, in which more was produced than waits."""
    history = History().known()
    history.round(0, 0)
    history.round(60, 150, produced=200)
    history.round(75, 150, members=1)
    return history


def both_up() -> History:
    """Up since before history; a partition without a commit comes up with it."""
    history = History()
    for at in (0, 15):
        history.round(at, offsets(0, None), offsets(1000, 850))
    history.round(30, offsets(200, None), offsets(1000, 850), members=1)
    return history


def waiting(at: float) -> History:
    """An end passed the commit at t = 0, and nothing moved until `at`."""
    history = History()
    history.rounds(-60, -15, offsets(1000, 1000), members=1)
    history.rounds(0, 60, offsets(1001, 1000), members=1)
    history.round(at, offsets(1001, 1000), members=1)
    return history


def falling(*lags: int) -> History:
    """Known since; then these, with four members."""
    history = History()
    history.round(-15, 0, members=4)
    return history.series(0, *lags, members=4)


def passed_over() -> History:
    """The total at T is not known; at the newest time at which it is, messages wait."""
    history = History().known(0, 0)
    for at in (0, 15, 30, 45):
        history.round(at, 0 if at == 0 else None, 5, members=1)
    history.round(60, None, 0, members=1)
    return history


def born_again() -> History:
    """A partition is born, goes, and is born again with lag."""
    history = History().known()
    history.round(0, 0, 0)
    for at in (15, 30, 45):
        history.round(at, 0)
    history.round(60, 0, 150)
    return history


def read_once(last: float) -> History:
    """Three members are read at t = 0 and never again; the commit stands."""
    history = History()
    for at in (*range(0, 180, 15), last):
        history.round(at, offsets(1000, 500), members=None if at else 3)
    return history


def gone_twice() -> History:
    """A partition that comes back unborn, goes, and comes back unborn again."""
    history = History()
    for at in (0, 15, 30, 45, 60):
        history.round(at, 0, 150)
    history.round(75, 0)
    history.round(120, 0, 150)
    history.round(135, 0)
    for at in (180, 195):
        history.round(at, 0, 150)
    return history


def born_beside_a_gap() -> History:
    """Where one partition is seen again after long, another is born."""
    history = History().rounds(-180, -120, 0)
    for at in range(-105, 0, 15):
        history.round(at, None)
    history.round(0, 150, 10)
    return history


def bridged(*, first: float = 0) -> History:
    """Two partitions over a gap: one proves 101, the other nothing."""
    history = History().known(0, 0)
    history.round(first, offsets(100_150, 100_000), offsets(100_000, 100_000))
    history.round(first + 60, offsets(100_199, 100_049), offsets(100_015, 100_005))
    return history


def passed_through(*times: float, reads: int = 0) -> History:
    """Messages at t = 0 and t = 30.03; the rounds at `times`, of which the last finds so many of them read."""
    history = History().rounds(-60, -15, offsets(1000, 1000), members=1)
    for at in times:
        end = 1000 + (at >= 0) + (at >= 30.03)
        history.round(at, offsets(end, 1000 + (reads if at == times[-1] else 0)), members=1)
    return history


def fell_in_a_hole() -> History:
    """The end falls while the partition is not seen."""
    history = History()
    history.round(0, offsets(2000, 2000), members=1)
    history.round(15, None, members=1)
    return history.rounds(30, 90, offsets(1000, 900), members=1)


def answered_late() -> History:
    """Two rounds a second apart, each answered after one and a half."""
    history = History()
    history.round(0, offsets(1000, 1000), members=1)
    history.round(1, offsets(1001, 1000), members=1)
    topic = history.topics[1]
    topic.rows = marked(replace(row.round, ends_asked_ms=0, ends_answered_ms=1_500) for row in topic.rows)
    return history


def never_together() -> History:
    """Of two partitions one was seen at t = 0, the other 50 s later."""
    history = History()
    history.round(0, 0, None)
    for at in (15, 30, 45):
        history.round(at, None, None)
    history.round(50, None, 0)
    return history


def up_again(gap: int) -> History:
    """Up for a while, and again after a gap in which more was produced than waits."""
    history = History().known().rounds(0, 60 - gap, 150)
    history.round(60, 150, produced=200)
    return history


def beside_a_reader(other: Offsets | None, *, missing: int | None = None) -> History:
    """150 behind and read; another partition, at its offsets, or 10 behind and read, is missing once."""
    history = History()
    for at in range(-120, 121, 15):
        beside = offsets(1000 + at, 990 + at) if other is None else other
        history.round(at, None if at == missing else beside, offsets(2000 + at, 1850 + at), members=2)
    return history


def calm_after_a_gap() -> History:
    """Calm after a minute without rounds, then up, with a member."""
    history = History().rounds(-120, -60, 0)
    history.round(0, 0, members=1)
    return history.rounds(15, 30, 150, members=1)


def both_unseen() -> History:
    """Neither partition was seen for longer than counts; messages waited at the newest known total."""
    history = History().known(0, 0)
    history.round(0, 0, 5, members=1)
    for at in (15, 30):
        history.round(at, None, 5, members=1)
    history.round(50, None, 0, members=1)
    for at in (65, 80, 100):
        history.round(at, None, None, members=1)
    return history


def known_since(at: int) -> History:
    """Topic 1 is known for long, topic 2 since an instant; both are polled until 60."""
    history = History().rounds(-120, 60, 0)
    return history.rounds(at, 60, 0, topic=2)


CASES = (
    Case("36 none", "a monitor without any target", no_targets, (unknown(0, Reason.NOTHING_TO_MEASURE),)),
    Case("28 two", "of two topics one moved long ago, the other just now", one_of_two_works, (calm(300, active=True),), WORK),
    Case("28 two", "and the other way round", lambda: one_of_two_works(first=2, second=1), (calm(300, active=True),), WORK),
    Case("28 edge", "a topic without newer rounds moved workSeconds before T", lambda: moved_at(240, until=300), (calm(300),), WORK | {"staleAfterSeconds": "90", "maxGapSeconds": "60"}),
    Case("28 known", "a topic without newer rounds is known for workSeconds at T", lambda: known_late(first=0, until=60), (calm(60),), WORK | {"staleAfterSeconds": "90", "maxGapSeconds": "60"}),
    Case("30 read", "no members as of 180 s ago", lambda: read_at_0(180, 3), (calm(180, members=0),)),
    Case("30 too old", "as of a millisecond more", lambda: read_at_0(180.001, 3), (calm(180.001, active=True, members=None),)),
    Case("24 one", "one message, stuck beside 150", lambda: stuck_beside(1), (sustained(120, 150, stuck=((1, 0),)),), STUCK),
    Case("24 missing", "stuck, missing from the newest round", lambda: stuck_beside(120, seen=False), (sustained(120, 150, stuck=((1, 0),)),), STUCK),
    Case("24 fallen", "the end falls: the commit stands all the same", lambda: standing(30, *[offsets(900, 500)] * 3), (calm(60, active=True, stuck=((1, 0),)),), STUCK),
    Case("24 fallen in a gap", "the end falls in a gap: what lies between is not known", lambda: standing(60, *[offsets(900, 500)] * 2, gap=60), (unknown(75, Reason.START_UNKNOWN, stuck=()),), STUCK),
    Case("24 gone", "0 is no measured total of what is neither stuck nor gone", gone_beside_stuck, (unknown(151, Reason.MISSING, stuck=((1, 0),)),), {**STUCK, "persistenceScope": "total"}),
    Case("24 gone beside", "what is left of the total has lasted", lambda: gone_beside_stuck(150), (sustained(151, 200, stuck=((1, 0),)),), {**STUCK, "persistenceScope": "total"}),
    Case("24 lost in a gap", "as much produced as waits, for the rest was lost", lambda: standing(60, *[offsets(1500, 500, 1000)] * 2, gap=60), (unknown(75, Reason.START_UNKNOWN, stuck=()),), STUCK),
    Case("24 expired", "the commit expires where the log starts: nothing moved", lambda: standing(30, *[offsets(1000, None, 500)] * 3), (calm(60, active=True, stuck=((1, 0),)),), STUCK | EARLIEST),
    Case("24 expired back", "the commit expires, and reading begins anew", lambda: standing(30, *[offsets(1000, None)] * 3), (sustained(60, 1000, stuck=()),), STUCK | EARLIEST),
    Case("21 interleaved", "equally far behind with complementary holes", interleaved, (unknown(60, Reason.START_UNKNOWN),)),
    Case("21 taken over", "as far behind as another topic was until now", taken_over, (calm(90, active=True),), {"activationSustainSeconds": "0"}),
    Case("29 behind", "a hole hidden behind another partition's lag", hole_behind_another, (unknown(60, Reason.START_UNKNOWN),), LONG),
    Case("7 rounds", "a gap between rounds, not between samples of one", late_rounds, (unknown(75, Reason.START_UNKNOWN),), LONG),
    Case("11 both", "open beside one without a commit", both_up, (unknown(30, Reason.START_UNKNOWN),), LONG | EARLIEST),
    Case("31 level", "a little more than the threshold", lambda: waiting(60.03), (sustained(60.03, 75.03),), {"metric": "timeLag", "lagThreshold": "60", "sustainSeconds": "0"}),
    Case("38 first", "drains at the first instant at which it lasted", lambda: falling(1000, 950, 900, 850, 800), (sustained(60, 400, recovering=True),), {"drainSeconds": "3600"}),
    Case("38 off", "the line is at the threshold already, and draining is off", lambda: falling(1000, 1000, 400, 120, 101), (sustained(60, 101, recovering=False),), {"persistenceScope": "total"}),
    Case("3 at once", "sustainSeconds 0 from the newest sample alone", lambda: History().rounds(0, 0, 150), (sustained(0, 150),), {"sustainSeconds": "0"}),
    Case("30 passed over", "a partition not seen for too long to be counted", passed_over, (calm(60, active=True),)),
    Case("37 again", "born a second time with lag", born_again, (calm(60, active=True),), {"persistenceScope": "total", "activationSustainSeconds": "0"}),
    Case("24 read", "members as of 180 s ago", lambda: read_once(180), (calm(180, active=True, stuck=((1, 0),)),), STUCK),
    Case("24 read too old", "as of a millisecond more", lambda: read_once(180.001), (sustained(180.001, 500, stuck=()),), STUCK),
    Case("16 twice", "gone twice: only what came after the last time counts", gone_twice, (unknown(195, Reason.START_UNKNOWN),)),
    Case("21 born beside", "a birth bounds no total of others", born_beside_a_gap, (unknown(0, Reason.START_UNKNOWN),), {"persistenceScope": "total"}),
    Case("21 edge", "calm exactly the greatest gap before", lambda: History().known().rounds(30, 30, 150), (calm(30),), {"persistenceScope": "total"}),
    Case("21 gap", "up exactly the greatest gap before", lambda: up_again(45), (sustained(60, 150),), {"persistenceScope": "total"}),
    Case("21 bound", "a partition that proves nothing takes nothing away", bridged, (sustained(60, 160),), {"persistenceScope": "total"}),
    Case("31 at least", "at least exactly the threshold", lambda: History().rounds(0, 60, offsets(1000, 900), members=1), (unknown(60, Reason.START_UNKNOWN),), {"metric": "timeLag", "lagThreshold": "60"}),
    Case("31 gap", "waited a little more than the threshold before a gap", lambda: passed_through(0, 15, 30, 45, 60, 75, 90, 100.03, 160.03), (sustained(160.03, 175.03),), {"metric": "timeLag"}),
    Case("31 gap below", "a little less", lambda: passed_through(0, 15, 30.03, 45, 60, 75, 90, 105, 120, 130, 190, reads=1), (unknown(190, Reason.START_UNKNOWN),), {"metric": "timeLag"}),
    Case("31 fallen", "the end fell in a hole", fell_in_a_hole, (unknown(90, Reason.START_UNKNOWN),), {"metric": "timeLag", "lagThreshold": "70", "sustainSeconds": "0"}),
    Case("31 late", "answered after the next round was asked", answered_late, (calm(1, active=True, time_lag=TimeLag(0, 250, 1_000)),), {"metric": "timeLag"}),
    Case("31 stuck", "how long a stuck partition waits need not be known", lambda: History().rounds(0, 75, offsets(1000, 500), members=2), (calm(75, active=True, stuck=((1, 0),)),), STUCK | {"metric": "timeLag"}),
    Case("30 never", "no total is known: neither is activity", never_together, (unknown(50, Reason.ACTIVITY_UNDETERMINED),)),
    Case("21 never", "no total is known", never_together, (unknown(50, Reason.START_UNKNOWN),), {"persistenceScope": "total"}),
    Case("18 small", "a target below one message", lambda: History().known().rounds(0, 60, 150), (sustained(60, 0.4),), {"allowIdleConsumers": "false", "targetLag": "0.4"}),
    Case("38 edge", "a second too late at the threshold", lambda: falling(10_000, 9_985, 9_970, 9_955, 9_940), (sustained(60, 9_940, recovering=False),), {"drainSeconds": "9839"}),
    Case("24 uncommitted", "nothing is read beside it, and nothing committed", lambda: beside_a_reader(offsets(1000, None)), (sustained(120, 150, stuck=()),), STUCK),
    Case("24 hole", "missing once, a round before the stretch", lambda: beside_a_reader(None, missing=45), (sustained(120, 160, stuck=()),), STUCK),
    Case("24 fallen edge", "the end falls within exactly the greatest gap", lambda: standing(45, *[offsets(900, 500)] * 2, gap=45), (calm(60, active=True, stuck=((1, 0),)),), STUCK),
    Case("2 after a gap", "up for a short time after a gap that calm ended", calm_after_a_gap, (calm(30, active=True),)),
    Case("30 both unseen", "every partition not seen for too long to be counted", both_unseen, (calm(100, active=True),), {"staleAfterSeconds": "200"}),
    Case("11 beside", "without a commit, beside one message that waits", lambda: History().rounds(-120, 0, offsets(1000, None), offsets(1000, 999), members=1), (calm(0, active=True),), {"scaleToZeroOnInvalidOffset": "true"}),
    Case("28 since", "one of two topics is not known for workSeconds yet", lambda: known_since(15), (unknown(60, Reason.ACTIVITY_UNDETERMINED),), WORK),
    Case("24 none", "beside a partition without lag that stands still", lambda: beside_a_reader(offsets(1000, 1000)), (sustained(120, 150, stuck=()),), STUCK),
    Case("2 edge", "up exactly the greatest gap after calm", lambda: History().known().rounds(0, 0, 0).rounds(45, 45, 150, members=1), (calm(45, active=True),), LONG),
    Case("2 level", "up after a sample at the threshold, the first ever", lambda: History().series(0, 100, 150, 150, members=1), (calm(30, active=True),), LONG),
)  # fmt: skip
