"""Histories 19, 27, 38, 39, 45, 49 and 52: caps, stabilized answers, draining, even split, active values."""

from __future__ import annotations

from collections.abc import Sequence

from lagscale.domain.verdict.contract import Answer, Reason, Verdict
from tests.contract.case import Case, Expected, Holding, calm, every, sustained, unknown
from tests.contract.histories import History, ms, offsets

CAPPED = {"allowIdleConsumers": "false"}
LIMITED = {**CAPPED, "limitToPartitionsWithLag": "true"}
EVEN = {**CAPPED, "ensureEvenDistributionOfPartitions": "true"}
TENS = {"lagThreshold": "500", "sustainSeconds": "120", "samplingInterval": "10", "maxGapSeconds": "25"}
DRAINING = {"drainSeconds": "120"}
UP = {"scaleUpStabilization": "60"}
DOWN = {"scaleDownStabilization": "300"}


def lagging(*lags: int) -> History:
    """These lags for 60 s, known since."""
    return History().known(*[0 for _ in lags]).rounds(0, 60, *lags)


def ten(wanted: int) -> History:
    """Ten partitions whose lag asks for so many replicas of 100."""
    return lagging(wanted * 100 - 9, *[1] * 9)


def rising() -> History:
    """200 for 60 s, and then twice as much every 15 s."""
    return History().known().series(0, 200, 200, 200, 200, 200, 400, 800, 1600, 3200, 6400)


def then(*lags: int | None, for_seconds: int = 60, members: int | None = 0) -> History:
    """The first of these lags for a while, known since, and then the others every 15 s."""
    history = History().known().rounds(0, for_seconds, lags[0])
    return history.series(for_seconds + 15, *lags[1:], members=members)


def kept(at: float, value: float) -> Expected:
    """Calm by now, and told what was told before."""
    return Expected(at, Verdict.CALM, value, True, {"raw": 0.0})


def working() -> History:
    """A consumer that keeps up for 60 s, and then has nothing to do."""
    history = History().known()
    for at in range(15, 181, 15):
        end = 100_000 + 500 * min(at, 60)
        history.round(at, offsets(end, end), members=1)
    return history


def working_and_gone() -> History:
    """A consumer that keeps up, and then no samples."""
    history = History().known()
    for at in range(15, 61, 15):
        history.round(at, offsets(100_000 + at, 100_000 + at), members=1)
    return history


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


def paused() -> History:
    """Twelve partitions of 100/s stop for 45 s, and are then read 30 % faster than written; every 10 s."""
    history = History()
    for at in range(-120, 231, 10):
        lag = 100 * at if at <= 45 else 4_500 - 30 * (at - 45)
        history.round(at, *[max(0, lag)] * 12, members=4)
    return history


def two_peaks() -> History:
    """600 for long, twice 2,000, and then less and less; every 10 s."""
    history = History()
    for at in range(-120, 0, 10):
        history.round(at, 0, members=1)
    for number, lag in enumerate([*[600] * 11, 2_000, 2_000, 1_500, 1_000, 600]):
        history.round(10 * number, lag, members=1)
    return history


def noisy() -> History:
    """Eleven partitions drain, and one stays at 5,000 with a noise of 20."""
    history = History().known(*[0] * 12)
    for number, lag in enumerate(falling()):
        noise = 20 if number % 2 else -20
        history.round(15 * number, *[lag] * 11, 5_000 + noise, members=4)
    return history


CASES = (
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
        (sustained(75, 200, raw=1_000.0, scale_up_value=200.0), kept(90, 200), kept(105, 200)),
        {**UP, **DOWN},
    ),
    Case(
        "38",
        "lag that falls: itself above 500, then no more than the members",
        drained,
        (
            *(sustained(60 + 15 * n, 800.0 - 50 * n, recovering=False) for n in range(6)),
            *(sustained(150 + 15 * n, min(500.0 - 50 * n, 400), recovering=True) for n in range(8)),
        ),
        DRAINING,
    ),
    Case(
        "38 nobody",
        "without members one replica",
        lambda: drained(0),
        (sustained(165, 100, recovering=True),),
        DRAINING,
    ),
    Case(
        "38 untold",
        "members not known: not draining",
        lambda: drained(None),
        (sustained(195, 350, recovering=False),),
        DRAINING,
    ),
    Case(
        "38 total",
        "the line of the total",
        drained,
        (sustained(135, 550, recovering=False), sustained(150, 400, recovering=True)),
        {**DRAINING, "persistenceScope": "total"},
    ),
    Case(
        "38 flat",
        "one of twelve stays: not draining",
        noisy,
        (sustained(210, 11 * 300 + 4_980, recovering=False),),
        DRAINING,
    ),
    Case(
        "38 young",
        "what has not lasted does not keep the others from draining",
        joined_by_another,
        (sustained(165, 400, recovering=True),),
        DRAINING,
    ),
    Case("39", "ten partitions, four wanted: five", lambda: ten(4), (sustained(60, 500),), EVEN),
    Case("39 six", "ten partitions, six wanted: ten", lambda: ten(6), (sustained(60, 1_000),), EVEN),
    Case(
        "39 one",
        "ten partitions, one wanted: one",
        lambda: lagging(200, *[0] * 9),
        (sustained(60, 1_000),),
        {**EVEN, "targetLag": "1000"},
    ),
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
    Case(
        "49",
        "21 messages at 0.7 are thirty replicas, not thirty-one, which would become sixty",
        lambda: lagging(2, *[1] * 19, *[0] * 40),
        (sustained(60, 21, total=21),),
        {**EVEN, "lagThreshold": "1", "targetLag": "0.7"},
    ),
    Case(
        "49 ten",
        "101 messages at 10.1 are ten replicas, not twelve",
        lambda: lagging(42, *[1] * 59),
        (sustained(60, 101, total=101),),
        {**EVEN, "lagThreshold": "1", "targetLag": "10.1"},
    ),
    Case(
        "49 cap",
        "three replicas of 0.7 are worth 2.1",
        lambda: lagging(2, 2, 2),
        (sustained(60, 2.1),),
        {**CAPPED, "lagThreshold": "1", "targetLag": "0.7"},
    ),
    Case(
        "49 missing",
        "and so are three members with a missing partition",
        lambda: lagging(2, 2, 2).rounds(75, 135, 2, None, 0, members=3),
        (sustained(135, 2.1, missing=1),),
        {"lagThreshold": "1", "targetLag": "0.7"},
    ),
    Case(
        "45",
        "calm and active has the active value, idle has none, and sustained its own",
        working,
        (
            calm(0, active=False, value=0.0),
            calm(15, active=True, value=1.0),
            calm(60, active=True, value=1.0),
            calm(105, active=True, value=1.0),
            calm(135, active=False, value=0.0),
        ),
        {"activeValue": "1", "workSeconds": "60"},
    ),
    Case(
        "45 sustained",
        "sustained lag has its value as ever",
        lambda: lagging(150),
        (calm(45, active=False, value=0.0), sustained(60, 150)),
        {"activeValue": "1"},
    ),
    Case(
        "45 up",
        "a calm instant ends the run, whatever its value",
        lambda: then(200, 0, *[1_000] * 5, members=1),
        (sustained(60, 200), calm(90, active=True, value=50.0), sustained(150, 1_000, scale_up_value=1_000.0)),
        {**UP, "activeValue": "50"},
    ),
    Case(
        "45 down",
        "the greatest of both counts",
        lambda: then(150, *[0] * 25),
        (kept(360, 150), calm(375)),
        {**DOWN, "activeValue": "50"},
    ),
    Case(
        "45 held",
        "and is held",
        working_and_gone,
        (Holding(60, Answer(1.0, True)), Holding(200, Answer(1.0, True, ms(60)))),
        {"activeValue": "1", "workSeconds": "60", "holdSeconds": "3600"},
    ),
    Case(
        "52",
        "after a pause no more replicas than there are: the rise is no part of the line",
        paused,
        (
            calm(120, active=True),
            *(sustained(at, 2_000, recovering=True) for at in range(130, 171, 10)),
            calm(180, active=True),
        ),
        {**TENS, "drainSeconds": "300"},
    ),
    Case(
        "52 short",
        "from the latest of equal peaks on, and over a quarter of the sustain time",
        two_peaks,
        (sustained(140, 1_000, recovering=False), sustained(150, 500, recovering=True)),
        {**TENS, "drainSeconds": "300"},
    ),
)
