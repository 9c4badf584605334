"""Histories 19, 24, 27, 38 and 39: caps, stuck partitions, stabilised answers, draining, even split."""

from __future__ import annotations

from collections.abc import Sequence

from lagscale.domain.lag import Offsets
from lagscale.domain.signal import Reason, Verdict
from tests.contract.case import Case, Expected, calm, every, sustained, unknown
from tests.contract.histories import History, offsets

CAPPED = {"allowIdleConsumers": "false"}
LIMITED = {**CAPPED, "limitToPartitionsWithLag": "true"}
EVEN = {**CAPPED, "ensureEvenDistributionOfPartitions": "true"}
STUCK = {"stuckAfterSeconds": "300"}
DRAINING = {"drainSeconds": "120"}
UP = {"scaleUpStabilization": "60"}
DOWN = {"scaleDownStabilization": "300"}


def lagging(*lags: int) -> History:
    """These lags for 60 s, known since."""
    return History().known(*[0 for _ in lags]).rounds(0, 60, *lags)


def ten(wanted: int) -> History:
    """Ten partitions whose lag asks for so many replicas of 100."""
    return lagging(wanted * 100 - 9, *[1] * 9)


def standing(members: int, *, moves_at: int = 10_000, until: int = 420) -> History:
    """One partition's end grows by 150 every 15 s and its commit moves only once; another one is read."""
    history = History().known(0, 0)
    for at in range(0, until + 1, 15):
        lag = 150 + 10 * at
        produced = 155 if at == moves_at else None
        history.round(at, lag if at < moves_at else lag - 5, 0, members=members, produced=produced)
    return history


def joined_late() -> History:
    """The same with members for the last 285 s only."""
    history = History().known(0, 0)
    for at in range(0, 421, 15):
        history.round(at, 150 + 10 * at, 0, members=3 if at >= 135 else 0)
    return history


def never_committed() -> History:
    """Nobody ever committed, and retention takes ten messages every 15 s; the group runs."""
    history = History()
    for at in range(0, 421, 15):
        history.round(at, Offsets(at, 1_000 + 10 * at, None, 1_000 + 10 * at), members=2)
    return history


def expiring() -> History:
    """A commit below a log start that retention moves on with every round."""
    history = History().known(0)
    for at in range(0, 421, 15):
        history.round(at, Offsets(900 + at, 2_000 + at, 100, 2_000 + at), members=2)
    return history


def with_hole() -> History:
    """A commit that stands still, not seen at 15 s."""
    history = History().known(0, 0)
    for at in range(0, 421, 15):
        history.round(at, None if at == 15 else 150 + 10 * at, 0, members=3)
    return history


def lost_and_found() -> History:
    """A commit below the log start, that at 330 s moves to just that start."""
    history = History().known(0)
    for at in range(0, 421, 15):
        history.round(at, Offsets(900, 2_000, 100 if at < 330 else 900, 2_000), members=2)
    return history


def recreated() -> History:
    """A topic that is created again with just the same offsets."""
    history = History().known(offsets(500, 500))
    for at in range(0, 466, 15):
        history.round(at, offsets(900, 500), members=2, new_id=at == 150)
    return history


def beside() -> History:
    """One partition is stuck, the other one is read too slowly."""
    history = History().known(0, 0)
    for at in range(0, 421, 15):
        history.round(at, offsets(109_000, 100_000), offsets(101_000 + at, 100_000 + at), members=2)
    return history


def rising() -> History:
    """200 for 60 s, and then twice as much every 15 s."""
    return History().known().series(0, 200, 200, 200, 200, 200, 400, 800, 1600, 3200, 6400)


def then(*lags: int | None, for_seconds: int = 60) -> History:
    """The first of these lags for a while, known since, and then the others every 15 s."""
    history = History().known().rounds(0, for_seconds, lags[0])
    return history.series(for_seconds + 15, *lags[1:])


def kept(at: float, value: float) -> Expected:
    """Calm by now, and told what was told before."""
    return Expected(at, Verdict.CALM, value, True, {"raw": 0.0})


def falling() -> Sequence[int]:
    """1,000 and 50 less with every sample."""
    return [1_000 - 50 * n for n in range(18)]


def drained(members: int | None = 4) -> History:
    """A lag that falls by 50 a sample from 1,000, at t = 0."""
    return History().known().series(0, *falling(), members=members)


def joined_by_another() -> History:
    """One partition drains; another one is above the threshold since a moment, and rises."""
    history = History().known(0, 0)
    for number, lag in enumerate(falling()):
        history.round(15 * number, lag, 0 if number < 8 else 100 + 10 * (number - 7), members=4)
    return history


def noisy() -> History:
    """Eleven partitions drain, and one stays at 5,000 with a noise of 20."""
    history = History().known(*[0] * 12)
    for number, lag in enumerate(falling()):
        noise = 20 if number % 2 else -20
        history.round(15 * number, *[lag] * 11, 5_000 + noise, members=4)
    return history


def printed() -> History:
    """Lag of 15,000, 12,000, 8,000 and 2,000 in minutes 0 to 3, read by two members that catch up."""
    history = History()
    for minute in range(-10, 0):
        history.round(60 * minute, 0, members=2)
    for minute, lag in enumerate((15_000, 12_000, 8_000, 2_000)):
        history.round(60 * minute, lag, members=2)
    return history


def recorded() -> History:
    """600 for two minutes, 1,500 for seven, 2,500 for four, and then nothing."""
    history = History().known()
    return history.rounds(0, 105, 600).rounds(120, 525, 1_500).rounds(540, 765, 2_500).rounds(780, 1_380, 0)


PRINTED = {"lagThreshold": "1000", "samplingInterval": "60", "maxGapSeconds": "150", "staleAfterSeconds": "180"}
SHAPES = (
    {"lagThreshold": "200", "sustainSeconds": "60", "scaleUpStabilization": "30"},
    {"lagThreshold": "1000", "sustainSeconds": "300", "scaleUpStabilization": "120"},
    {"lagThreshold": "2000", "sustainSeconds": "180", "scaleDownStabilization": "600"},
)

CASES = (
    Case(
        "A3 five minutes",
        "a backlog that goes never lasts that long",
        printed,
        tuple(calm(60 * minute, active=True, reason=Reason.NOT_YET) for minute in range(4)),
        {**PRINTED, "sustainSeconds": "300"},
    ),
    Case(
        "A3 two minutes",
        "it has lasted at minute 2",
        printed,
        (calm(60, active=True), sustained(120, 8_000), sustained(180, 2_000)),
        {**PRINTED, "sustainSeconds": "120"},
    ),
    Case(
        "A3 draining",
        "and is seen to drain: no more replicas than members",
        printed,
        (sustained(120, 2_000, draining=True), sustained(180, 2_000, draining=True)),
        {**PRINTED, "sustainSeconds": "120", "drainSeconds": "180"},
    ),
    Case(
        "A5 first",
        "a low threshold, soon",
        recorded,
        (sustained(60, 600), sustained(540, 1_500, raw=2_500.0), sustained(600, 2_500), calm(780)),
        SHAPES[0],
    ),
    Case(
        "A5 second",
        "a higher one, later, rising slowly",
        recorded,
        (calm(405, active=True), sustained(600, 1_500, raw=2_500.0), sustained(675, 2_500), calm(780)),
        SHAPES[1],
    ),
    Case(
        "A5 third",
        "the highest, which stays for ten minutes",
        recorded,
        (calm(600, active=True), sustained(720, 2_500), kept(780, 2_500), kept(1_365, 2_500), calm(1_380)),
        SHAPES[2],
    ),
    Case(
        "19",
        "one partition with lag is worth one replica",
        lambda: lagging(100_000, *[0] * 11),
        (sustained(60, 100, lagging=1, total=100_000),),
        LIMITED,
    ),
    Case(
        "19 three",
        "three with lag are worth three",
        lambda: lagging(100_000, 1, 1, *[0] * 9),
        (sustained(60, 300, lagging=3),),
        LIMITED,
    ),
    Case(
        "19 shared",
        "two partitions in one replica",
        lambda: lagging(100_000, 1, 1, *[0] * 9),
        (sustained(60, 200),),
        {**LIMITED, "consumersPerReplica": "2"},
    ),
    Case(
        "24",
        "a commit that stands still under members counts until 300 s",
        lambda: standing(3),
        (
            sustained(60, 750, stuck=()),
            sustained(285, 3_000, stuck=()),
            calm(300, active=True, reason=Reason.NO_BREACH, stuck=((1, 0),), stuck_lag=3_150),
            calm(420, active=True, stuck=((1, 0),)),
        ),
        STUCK,
    ),
    Case(
        "24 moves",
        "it counts again, with its whole island, when the commit moves",
        lambda: standing(3, moves_at=345),
        (calm(330, active=True, stuck=((1, 0),)), sustained(345, 3_595, stuck=(), span=345.0)),
        STUCK,
    ),
    Case(
        "24 nobody", "without members nothing is stuck", lambda: standing(0), (sustained(420, 4_350, stuck=()),), STUCK
    ),
    Case(
        "24 late",
        "members for less than 300 s prove nothing",
        joined_late,
        (sustained(420, 4_350, stuck=()),),
        STUCK,
    ),
    Case(
        "24 earliest",
        "without any commit as well, though retention moves its beginning",
        never_committed,
        (calm(420, active=True, stuck=((1, 0),), stuck_lag=4_780),),
        {**STUCK, "offsetResetPolicy": "earliest"},
    ),
    Case(
        "24 lost",
        "a commit that moves to where reading begins has moved",
        lost_and_found,
        (calm(315, active=True, stuck=((1, 0),)), sustained(330, 1_100, stuck=()), sustained(420, 1_100, stuck=())),
        STUCK,
    ),
    Case(
        "24 expiring",
        "what retention takes is no movement",
        expiring,
        (sustained(285, 1_100), calm(300, active=True, stuck=((1, 0),), stuck_lag=1_100)),
        STUCK,
    ),
    Case("24 hole", "one missing sample is none", with_hole, (calm(315, active=True, stuck=((1, 0),)),), STUCK),
    Case(
        "24 long",
        "what moved before has no part in it",
        lambda: standing(3, moves_at=150, until=600),
        (sustained(435, 4_495, stuck=()), calm(450, active=True), calm(600, active=True, stuck=((1, 0),))),
        STUCK,
    ),
    Case(
        "24 recreated",
        "offsets of two topics cannot be compared",
        recreated,
        (sustained(300, 400, stuck=()), calm(450, active=True, stuck=((1, 0),))),
        STUCK,
    ),
    Case(
        "24 beside",
        "the others count",
        beside,
        (sustained(285, 10_000, stuck=()), sustained(300, 1_000, stuck=((1, 0),), stuck_lag=9_000, lagging=1)),
        STUCK,
    ),
    Case(
        "24 total",
        "left out of the total as well",
        lambda: standing(3),
        (sustained(285, 3_000), calm(300, active=True, stuck=((1, 0),))),
        {**STUCK, "persistenceScope": "total"},
    ),
    Case(
        "27",
        "the first answer comes at once, later ones when they have held",
        rising,
        (*every(60, 120, sustained, 200), sustained(135, 400, raw=6_400.0)),
        UP,
    ),
    Case(
        "27 dip",
        "a dip counts for as long",
        lambda: then(1_000, 400, 1_000),
        (sustained(60, 1_000), sustained(75, 400), sustained(90, 400)),
        UP,
    ),
    Case(
        "27 again",
        "a value of 0 ends the run",
        lambda: then(200, 0, *[1_000] * 6),
        (sustained(60, 200), calm(75), calm(135), sustained(150, 1_000)),
        UP,
    ),
    Case(
        "27 down",
        "the highest answer is kept for 300 s after the lag went",
        lambda: then(150, *[0] * 25),
        (
            sustained(60, 150),
            *(kept(at, 150) for at in (75, 210, 360)),
            calm(375),
        ),
        DOWN,
    ),
    Case(
        "27 unknown",
        "unknown is an error all the same",
        lambda: then(150, *[0] * 4),
        (kept(120, 150), unknown(181, Reason.STALE)),
        DOWN,
    ),
    Case(
        "27 both",
        "what is kept is what had held",
        lambda: then(200, 1_000, 0, 0),
        (sustained(75, 200, raw=1_000.0, risen=200.0), kept(90, 200), kept(105, 200)),
        {**UP, **DOWN},
    ),
    Case(
        "38",
        "lag that falls: itself above 500, then no more than the members",
        drained,
        (
            *(sustained(60 + 15 * n, 800.0 - 50 * n, draining=False) for n in range(6)),
            *(sustained(150 + 15 * n, min(500.0 - 50 * n, 400), draining=True) for n in range(8)),
        ),
        DRAINING,
    ),
    Case(
        "38 nobody", "without members one replica", lambda: drained(0), (sustained(165, 100, draining=True),), DRAINING
    ),
    Case(
        "38 untold",
        "members not known: not draining",
        lambda: drained(None),
        (sustained(195, 350, draining=False),),
        DRAINING,
    ),
    Case(
        "38 total",
        "the line of the total",
        drained,
        (sustained(135, 550, draining=False), sustained(150, 400, draining=True)),
        {**DRAINING, "persistenceScope": "total"},
    ),
    Case(
        "38 flat",
        "one of twelve stays: not draining",
        noisy,
        (sustained(210, 11 * 300 + 4_980, draining=False),),
        DRAINING,
    ),
    Case(
        "38 young",
        "what has not lasted does not keep the others from draining",
        joined_by_another,
        (sustained(165, 400, draining=True),),
        DRAINING,
    ),
    Case("39", "ten partitions, four wanted: five", lambda: ten(4), (sustained(60, 500),), EVEN),
    Case("39 six", "ten partitions, six wanted: ten", lambda: ten(6), (sustained(60, 1_000),), EVEN),
    Case("39 many", "more wanted than partitions: all", lambda: ten(60), (sustained(60, 1_000),), EVEN),
    Case(
        "39 seven", "seven partitions, two wanted: seven", lambda: lagging(194, *[1] * 6), (sustained(60, 700),), EVEN
    ),
    Case("39 none", "no lag: nothing", lambda: lagging(*[0] * 10), (calm(60),), EVEN),
    Case(
        "39 shared",
        "twelve partitions, three in a replica: a divisor of four",
        lambda: lagging(289, *[1] * 11),
        (sustained(60, 400),),
        {**EVEN, "consumersPerReplica": "3"},
    ),
)
