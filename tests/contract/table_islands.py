"""Histories 1 to 10: how long lag has lasted, and what is known of its beginning."""

from __future__ import annotations

from lagscale.domain.lag.samples import Offsets
from lagscale.domain.verdict.contract import Reason
from tests.contract.case import Case, calm, every, sustained, unknown
from tests.contract.histories import History, offsets


def constant(lag: int, first: int, last: int, *, known: bool = True) -> History:
    history = History().known() if known else History()
    return history.rounds(first, last, lag)


def holed(lag: int, produced: int, *, rounds: bool = False) -> History:
    """150 at t = 0, nothing at 15 to 60, `lag` at 75 with `produced` messages in between."""
    history = constant(150, 0, 0)
    if rounds:
        history.rounds(15, 60, None)
    history.round(75, lag, produced=produced)
    return history.rounds(90, 180, lag)


def in_turns() -> History:
    """Three partitions, each above the level for 30 s, always one of them."""
    history = History().known(0, 0, 0)
    for number, at in enumerate(range(0, 241, 15)):
        lags = [0, 0, 0]
        lags[number // 2 % 3] = 150
        history.round(at, *lags)
    return history


def many(*lags: int) -> History:
    return History().known(*[0 for _ in lags]).rounds(0, 60, *lags)


def uneven() -> History:
    """A row whose own time lies exactly the greatest gap after the one before."""
    history = History().known()
    for at in (0, 45, 90):
        history.round(at, 150)
    return history


def by_a_hair() -> History:
    history = History().known()
    for at in (0, 45.001, 90):
        history.round(at, offsets(1000 + round(at * 10), 850 + round(at * 10)))
    return history


def still_reset() -> History:
    """A topic created again, its commit beyond its end before and after a hole."""
    history = History().rounds(-120, -15, offsets(500, 500))
    history.round(0, offsets(150, 500), new_id=True)
    history.round(75, offsets(170, 500))
    return history


def truncated() -> History:
    """In a hole the end falls by 60 under the same id; the commit, below it, does not move."""
    history = History().known().rounds(0, 0, offsets(100_300, 100_000))
    history.round(75, offsets(100_240, 100_000))
    return history


def other_id() -> History:
    """150 before and after a hole in which the topic was created again, with a log that reaches further."""
    history = History().known().rounds(0, 0, offsets(100_150, 100_000))
    history.round(75, offsets(100_160, 100_010), new_id=True)
    return history


def hottest_missing() -> History:
    """One of two partitions is above the level at 0 to 45, and missing from the newest round."""
    history = History().known(0, 0).rounds(0, 45, 0, 150, members=1)
    return history.rounds(60, 60, 0, None, members=1)


def gone_total() -> History:
    """A lag of 150, and three rounds in which its only partition is missing."""
    history = History().known().rounds(0, 90, 150)
    for at in (105, 120, 135):
        history.round(at, None)
    return history


CASES = (
    Case(
        "35 total",
        "a total that lasted is worth nothing when all of it is stale",
        gone_total,
        (sustained(150, 150), unknown(151, Reason.MISSING), unknown(190, Reason.MISSING)),
        {"persistenceScope": "total"},
    ),
    Case(
        "35 total, stale",
        "a total that lasted is not told when it is stale, although another partition is fresh",
        lambda: History().rounds(-120, 60, 150, 5, members=3).rounds(75, 180, None, 5, members=3),
        (sustained(60, 155), unknown(180, Reason.MISSING, missing=1)),
        {"persistenceScope": "total"},
    ),
    Case("1", "no samples", History, (unknown(0, Reason.NO_DATA, island=None),)),
    Case(
        "2",
        "a spike is calm at every instant",
        lambda: History().known().series(0, 0, 500, 900, 400, 20, 0),
        (*every(0, 75, calm), calm(45, reason=Reason.NOT_YET, span=30, start_known=True), calm(75, island=None)),
    ),
    Case(
        "3",
        "lag that lasts, known since",
        lambda: constant(150, 0, 60),
        (
            *every(0, 45, calm, reason=Reason.NOT_YET, start_known=True),
            sustained(60, 150, span=60, start_known=True, total=150, missing=0),
        ),
    ),
    Case(
        "3 falling",
        "the current lag, neither the maximum nor a sum",
        lambda: History().known().series(0, 900, 500, 300, 200, 150),
        (sustained(60, 150, lag=150),),
    ),
    Case(
        "4",
        "nothing before",
        lambda: constant(150, 0, 60, known=False),
        (
            *every(0, 45, unknown, Reason.START_UNKNOWN, start_known=False),
            sustained(60, 150, span=60, start_known=False),
        ),
    ),
    Case("5", "exactly the threshold", lambda: constant(100, 0, 600), every(0, 45, calm, island=None)),
    Case(
        "5 active",
        "exactly the threshold is backlog, never sustained",
        lambda: constant(100, 0, 600),
        every(60, 600, calm, active=True, reason=Reason.NO_BREACH),
    ),
    Case("5 above", "one above", lambda: constant(101, 0, 600), every(60, 600, sustained, 101)),
    Case(
        "23",
        "a saw-tooth never lasts",
        lambda: History().known().series(0, *[0, 200, 400, 600] * 10),
        every(0, 585, calm, active=False),
        {"lagThreshold": "500"},
    ),
    Case(
        "5 touched",
        "one sample exactly at the threshold ends an island",
        lambda: constant(150, 0, 30).series(45, 100, 150, 150, 150),
        (calm(90, active=True, span=30.0, start_known=True),),
    ),
    Case(
        "6",
        "a long stretch that ended",
        lambda: constant(150, 0, 200).rounds(210, 300, 50),
        (sustained(195, 150), calm(210, active=True, island=None), calm(300, active=True, island=None)),
    ),
    Case(
        "7",
        "one sample missing",
        lambda: constant(150, 0, 15).rounds(30, 30, None).rounds(45, 60, 150),
        (calm(30, missing=0), calm(45), sustained(60, 150, span=60)),
    ),
    Case(
        "7 hole",
        "200 messages in the hole",
        lambda: holed(150, 200),
        (
            unknown(61, Reason.STALE, missing=1, total=0),
            unknown(75, Reason.START_UNKNOWN, span=0, start_known=False),
            unknown(120, Reason.START_UNKNOWN, span=45),
            sustained(135, 150, span=60, start_known=False),
        ),
    ),
    Case(
        "7 hole in rounds",
        "the same, with rounds in which the partition is missing",
        lambda: holed(150, 200, rounds=True),
        (
            unknown(61, Reason.MISSING, missing=1),
            unknown(75, Reason.START_UNKNOWN, span=0, start_known=False),
            sustained(135, 150, span=60),
        ),
    ),
    Case(
        "7 bridged", "20 messages in the hole", lambda: holed(150, 20), (sustained(75, 150, span=75, start_known=True),)
    ),
    Case(
        "7 bound at the level",
        "50 messages in the hole: the lag may have been at the threshold",
        lambda: holed(150, 50),
        (unknown(75, Reason.START_UNKNOWN), sustained(135, 150)),
    ),
    Case("7 bound above", "49 messages in the hole", lambda: holed(150, 49), (sustained(75, 150, span=75),)),
    Case("7 gone", "40 after the hole", lambda: holed(40, 20), (calm(75, active=True, island=None),)),
    Case(
        "7 gone with 200",
        "40 after 200 messages: whether backlog lasted cannot be told until 60 s later",
        lambda: holed(40, 200),
        (unknown(75, Reason.ACTIVITY_UNDETERMINED, island=None), calm(135, active=True)),
    ),
    Case(
        "7 below",
        "150 before the hole and 40 after, with messages wanted in number before there is work",
        lambda: holed(40, 200),
        (calm(75, island=None),),
        {"activationLagThreshold": "50"},
    ),
    Case("7 exact gap", "as far apart as may be", uneven, (sustained(90, 150, span=90),)),
    Case("7 beyond gap", "a millisecond further", by_a_hair, (unknown(90, Reason.START_UNKNOWN, span=44.999),)),
    Case(
        "8",
        "the newest sample's age",
        lambda: constant(5000, 0, 60),
        (
            sustained(119, 5000),
            sustained(120, 5000),
            unknown(120.001, Reason.STALE, missing=1, total=0, island=None),
            unknown(121, Reason.STALE, missing=1),
        ),
    ),
    Case(
        "9",
        "one of three",
        lambda: many(150, 0, 0),
        (calm(45), sustained(60, 150, partitions=3)),
    ),
    Case("9 sum", "the sum of all three", lambda: many(20, 150, 70), (sustained(60, 240, lag=150),)),
    Case(
        "9 hotter",
        "another partition is higher, for a shorter time",
        lambda: History().known(0, 0).rounds(0, 45, 150, 0, members=1).rounds(60, 60, 150, 900, members=1),
        (calm(45, active=True), sustained(60, 1050, span=60, lag=150)),
    ),
    Case("10", "in turns", in_turns, every(60, 240, calm, active=True, reason=Reason.NOT_YET)),
    Case(
        "10 total",
        "in turns, the total",
        in_turns,
        (
            calm(45),
            *every(60, 165, sustained, 150, start_known=True),
            # Beyond the lookback of 165 s only the last round before it counts.
            sustained(240, 150, span=180, start_known=False),
        ),
        {"persistenceScope": "total"},
    ),
    Case(
        "rewind in a hole",
        "a commit that moved backwards proves nothing of the hole before it",
        lambda: (h := constant(150, 0, 0), h.round(75, Offsets(0, 1160, 840, 1160)), h)[-1],
        (unknown(75, Reason.START_UNKNOWN, span=0),),
    ),
    Case(
        "end in a hole",
        "nor does an end that fell",
        truncated,
        (calm(0, span=0, start_known=True), unknown(75, Reason.START_UNKNOWN, span=0, start_known=False)),
    ),
    Case(
        "other id in a hole",
        "nor do samples of two topic ids",
        other_id,
        (calm(0, span=0, start_known=True), unknown(75, Reason.START_UNKNOWN, span=0, start_known=False)),
    ),
    Case(
        "calm before a gap",
        "a member is there, and the gap is shorter than the sustain time",
        lambda: History().known().rounds(45, 45, 150, members=1),
        (unknown(45, Reason.START_UNKNOWN, span=0, start_known=False),),
        {"sustainSeconds": "120"},
    ),
    Case(
        "hottest missing",
        "a span ends with the partition's own newest sample",
        hottest_missing,
        (calm(60, active=True, reason=Reason.NOT_YET, span=45, missing=0, total=150),),
    ),
    Case(
        "reset in a hole",
        "nor does a commit that is still beyond the end",
        still_reset,
        (calm(0, span=0, start_known=True), unknown(75, Reason.START_UNKNOWN, span=0, start_known=False)),
        {"offsetResetPolicy": "earliest"},
    ),
)
