"""History 31 and its neighbors: lag in seconds, from stored ends."""

from __future__ import annotations

from lagscale.domain.lag.samples import Offsets
from lagscale.domain.lag.time_lag import TimeLag
from lagscale.domain.verdict.contract import Reason
from tests.contract.case import Case, calm, sustained, unknown
from tests.contract.histories import History, offsets

SECONDS = {"metric": "timeLag", "lagThreshold": "100"}
RATE = 50


def waited(at: float, seconds: float) -> Offsets:
    """A steady producer of 50 messages a second, and a commit that is so far behind."""
    end = 100_000 + round(RATE * at)
    return offsets(end, end - round(RATE * seconds))


def behind(seconds: float, *, first: int = -120, members: int | None = 1) -> History:
    """The same time behind in each sample."""
    history = History()
    for at in range(first, 61, 15):
        history.round(at, waited(at, seconds), members=members)
    return history


def stopped(*, members: int | None = 3, partitions: int = 1, answered: int | None = None) -> History:
    """A consumer that keeps up until t = 0 and then reads no more."""
    history = History()
    for at in range(-120, 196, 15):
        history.round(at, *[waited(at, max(at, 0))] * partitions, members=members, answered=answered)
    return history


def one_before_the_other() -> History:
    """Two partitions of which nobody reads any more: the second one since a minute before the first."""
    history = History()
    for at in range(-120, 196, 15):
        history.round(at, waited(at, max(at, 0)), waited(at, max(at + 60, 0)), members=3)
    return history


def missing_now() -> History:
    """The partition of such a consumer is missing from the round at 195 s; another one has little lag."""
    history = History()
    for at in range(-120, 196, 15):
        stands = None if at == 195 else waited(at, max(at, 0))
        history.round(at, stands, waited(at, 5), members=3)
    return history


def with_hole(after: float) -> History:
    """150 s behind, a hole of 60 s, and then so many seconds behind."""
    history = History()
    for at in range(-300, 1, 15):
        history.round(at, waited(at, 150), members=1)
    for at in range(60, 136, 15):
        history.round(at, waited(at, after), members=1)
    return history


def came_back() -> History:
    """A second partition that two rounds do not name, and that has lag when it is named again."""
    history = History()
    history.round(0, 0, offsets(100, 100), members=1)
    history.round(15, 0, members=1)
    history.round(60, 0, offsets(150, 100), members=1)
    history.round(75, 0, offsets(150, 100), members=1)
    return history


def born_again() -> History:
    """The same, named again so soon that it is known to be new."""
    history = History()
    history.round(0, 0, offsets(100, 100), members=1)
    history.round(15, 0, members=1)
    history.round(30, 0, offsets(150, 100), members=1)
    history.round(45, 0, offsets(150, 100), members=1)
    return history


def truncated(*, new_id: bool) -> History:
    """An end that falls, under the same topic id or under another one, to below where it was."""
    history = History()
    history.round(0, offsets(100, 100), members=1)
    history.round(15, offsets(400, 100), members=1)
    history.round(30, offsets(300, 100), members=1, new_id=new_id)
    history.round(45, offsets(310, 100), members=1)
    return history


def recreated_above() -> History:
    """Another topic, whose end is above that of the one before."""
    history = History()
    history.round(0, offsets(100, 100), members=1)
    history.round(15, offsets(400, 100), members=1)
    history.round(30, offsets(500, 100), members=1, new_id=True)
    history.round(45, offsets(510, 100), members=1)
    return history


def idle_then_one() -> History:
    """Nothing came for long, and then one message that nobody reads."""
    history = History().rounds(-300, 0, offsets(100, 100), members=1)
    return history.rounds(15, 120, offsets(101, 100), members=1)


CASES = (
    Case(
        "31",
        "50 messages a second, 1,060 behind: 21.2 s, between two samples",
        lambda: behind(21.2),
        (calm(60, active=True, time_lag=TimeLag(15_000, 21_200, 30_000), total=1_060),),
        SECONDS,
    ),
    Case(
        "31 none",
        "commit = end: none",
        lambda: behind(0),
        (calm(60, time_lag=TimeLag(0, 0, 0), reason=Reason.NO_BREACH),),
        SECONDS,
    ),
    Case(
        "31 at least",
        "older than the history",
        lambda: behind(500),
        (
            unknown(-30, Reason.START_UNKNOWN, time_lag=TimeLag(90_000, 90_000, None)),
            unknown(0, Reason.START_UNKNOWN, span=15.0, start_known=False),
        ),
        {**SECONDS, "lagThreshold": "95", "sustainSeconds": "600", "activationSustainSeconds": "0"},
    ),
    Case(
        "31 idle",
        "a message after a long silence came after the last sample without it",
        idle_then_one,
        (calm(60, active=True, time_lag=TimeLag(45_000, 60_000, 60_000)),),
        SECONDS,
    ),
    Case(
        "31 sustained",
        "a consumer that stops: above 100 s for 60 s, by what it has waited at least",
        stopped,
        (
            calm(105, active=True, time_lag=TimeLag(90_000, 105_000, 105_000), reason=Reason.NO_BREACH),
            calm(165, active=True, span=45.0, start_known=True, reason=Reason.NOT_YET),
            sustained(180, 540, time_lag=TimeLag(165_000, 180_000, 180_000), span=60.0, start_known=True, lag=165_000),
        ),
        SECONDS,
    ),
    Case(
        "31 capped",
        "caps are in replicas",
        lambda: stopped(partitions=2),
        (sustained(180, 200),),
        {**SECONDS, "allowIdleConsumers": "false"},
    ),
    Case(
        "31 target",
        "so many seconds for each replica",
        lambda: stopped(members=0),
        (sustained(180, 180),),
        {**SECONDS, "targetLag": "20"},
    ),
    Case(
        "31 members",
        "how many replicas share it must be known",
        lambda: stopped(members=None),
        (calm(165, active=True), unknown(180, Reason.MEMBERS_UNKNOWN)),
        SECONDS,
    ),
    Case(
        "31 shared",
        "two members in a replica",
        stopped,
        (sustained(180, 360),),
        {**SECONDS, "consumersPerReplica": "2"},
    ),
    Case(
        "31 exact",
        "exactly the threshold is no breach",
        stopped,
        (calm(165, active=True, span=45.0), sustained(180, 540, span=60.0)),
        {**SECONDS, "lagThreshold": "90"},
    ),
    Case(
        "31 two",
        "the longest wait decides, and is what the value is made of",
        one_before_the_other,
        (
            calm(105, active=True, reason=Reason.NOT_YET),
            sustained(120, 540, time_lag=TimeLag(165_000, 180_000, 180_000)),
            sustained(180, 720, time_lag=TimeLag(225_000, 240_000, 240_000)),
        ),
        SECONDS,
    ),
    Case(
        "31 just above",
        "less than a second above the threshold is above it",
        lambda: stopped(answered=500),
        (calm(105, active=True, reason=Reason.NOT_YET, span=0.0, time_lag=TimeLag(89_500, 104_750, 105_000)),),
        {**SECONDS, "lagThreshold": "89"},
    ),
    Case(
        "31 stuck",
        "a commit that stands still under members is left out by time as well",
        stopped,
        (calm(180, active=True, stuck=((1, 0),)),),
        {**SECONDS, "stuckAfterSeconds": "150"},
    ),
    Case(
        "31 answered",
        "a message may have come after the stamp of the round that counts it",
        lambda: stopped(answered=1_500),
        (calm(180, active=True, span=45.0), sustained(195, 582.75, time_lag=TimeLag(178_500, 194_250, 195_000))),
        {**SECONDS, "lagThreshold": "104"},
    ),
    Case(
        "31 hole",
        "a partition that is missing now counts by its last sample",
        missing_now,
        (sustained(195, 540),),
        SECONDS,
    ),
    Case(
        "31 recreated above",
        "ends of another topic prove nothing, however they go on",
        recreated_above,
        (unknown(45, Reason.START_UNKNOWN, time_lag=TimeLag(15_000, 15_000, None)),),
        SECONDS,
    ),
    Case(
        "31 bridged",
        "what is unread after a hole was unread before it",
        lambda: with_hole(210),
        (sustained(75, 210),),
        SECONDS,
    ),
    Case(
        "31 gap",
        "what is unread after the hole may have come in it",
        lambda: with_hole(150),
        (unknown(75, Reason.START_UNKNOWN), sustained(120, 150)),
        SECONDS,
    ),
    Case(
        "31 unnamed",
        "ends from before a partition was gone prove nothing",
        came_back,
        (unknown(75, Reason.START_UNKNOWN, time_lag=TimeLag(15_000, 15_000, None)),),
        SECONDS,
    ),
    Case(
        "31 born",
        "nor do those from before it was born",
        born_again,
        (unknown(45, Reason.START_UNKNOWN, time_lag=TimeLag(15_000, 15_000, None)),),
        SECONDS,
    ),
    Case(
        "31 truncated",
        "nor do those from before the end fell",
        lambda: truncated(new_id=False),
        (unknown(45, Reason.START_UNKNOWN, time_lag=TimeLag(15_000, 15_000, None)),),
        SECONDS,
    ),
    Case(
        "31 recreated",
        "nor do those of an earlier topic",
        lambda: truncated(new_id=True),
        (unknown(45, Reason.START_UNKNOWN, time_lag=TimeLag(15_000, 15_000, None)),),
        SECONDS,
    ),
)
