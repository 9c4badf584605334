"""More of history 31: where the newest rows alone must not decide how long a message has waited."""

from __future__ import annotations

from lagscale.domain.lag.time_lag import TimeLag
from lagscale.domain.verdict.contract import Reason
from tests.contract.case import Case, calm, sustained, unknown
from tests.contract.histories import History, offsets

SECONDS = {"metric": "timeLag", "lagThreshold": "14"}


def _back(named_again: int, *, absent: int = 1, rise: int = -15, silent: tuple[int, ...] = ()) -> History:
    """A second topic that is absent for some rounds before, and that is read up at t = 0.

    What is unread then came before the round at `rise`; until then a message waited that had come long before.
    """
    history = History()
    for at in range(-240, 1, 15):
        if at in silent:
            continue
        end = 200 if at < rise else 300
        # The newest rows alone decide only where each topic has something unread.
        history.round(at, offsets(1_000 + at, 999 + at), members=1)
        if named_again - 15 * absent <= at < named_again:
            history.round(at, topic=2, members=1, absent=True)
        else:
            history.round(at, offsets(end, 200 if at == 0 else 100), topic=2, members=1)
    return history


def recreated_and_read() -> History:
    """The topic is created again with its end above the old one, and its backlog is read up to what came later."""
    history = History()
    for at in range(-120, -30, 15):
        history.round(at, offsets(6_000, 4_900), members=1)
    for number, at in enumerate(range(-30, 106, 15)):
        history.round(
            at, offsets(10_000 + 100 * number, 10_100 if at == 105 else 5_000 + at // 15), members=1, new_id=at == -30
        )
    return history


def fallen_and_read() -> History:
    """The same with the end of one topic that falls."""
    history = History()
    for at in range(-120, -30, 15):
        history.round(at, offsets(10_300, 4_900), members=1)
    for number, at in enumerate(range(-30, 106, 15)):
        history.round(at, offsets(10_000 + 100 * number, 10_100 if at == 105 else 5_000 + at // 15), members=1)
    return history


def read_up_beside() -> History:
    """One partition of which nobody reads any more, and one that was read up for as long."""
    history = History().rounds(-120, 0, offsets(10, 10), offsets(100, 100), members=1)
    history.rounds(15, 60, offsets(11, 11), offsets(200, 100), members=1)
    return history.rounds(75, 105, offsets(12, 11), offsets(200, 100), members=1)


def missing_once(*others: int) -> History:
    """A reader that is 60 s behind, and that was missing once, 75 s ago."""
    history = History()
    for at in range(-240, 1, 15):
        end = 100_000 + at
        history.round(at, None if at == -75 else offsets(end, end - 60), *others, members=1)
    return history


def stopped_a_little_later() -> History:
    """A consumer that stops at t = 0; from 100 s on the rounds come one millisecond later."""
    history = History()
    for at in range(-120, 196, 15):
        end = 100_000 + 50 * at
        history.round(at + (0.001 if at > 100 else 0), offsets(end, min(end, 100_000)), members=3)
    return history


def expired_once() -> History:
    """The commit of a consumer that stopped is gone in one round."""
    history = History()
    for at in range(-120, 196, 15):
        end = 100_000 + 50 * at
        history.round(at, offsets(end, None if at == 135 else min(end, 100_000)), members=3)
    return history


def same_estimate() -> History:
    """The last of a million messages came at the end of a round; at another partition one came as it had begun."""
    history = History()
    history.round(0, offsets(10, 10), offsets(10, 10), members=1)
    history.round(15, offsets(10, 10), offsets(1_000_010, 1_000_009), members=1)
    for at in range(30, 106, 15):
        history.round(at, offsets(11, 10), offsets(1_000_010, 1_000_009), members=1)
    return history


def same_lower() -> History:
    """Two topics of which one was not asked in the round before a message came."""
    history = History()
    history.round(0, offsets(10, 10), members=1)
    history.round(0, offsets(10, 10), topic=2, members=1)
    history.round(15, offsets(10, 10), members=1)
    for at in range(30, 106, 15):
        # Half of it came before what the reader waits for; of the other one it is the first.
        history.round(at, offsets(11, 10), members=1)
        history.round(at, offsets(12, 11), topic=2, members=1)
    return history


def fallen_at_last() -> History:
    """The end falls in the newest round, and stays above what is unread."""
    history = History().rounds(-30, 0, offsets(100, 100), members=1)
    history.round(15, offsets(400, 100), members=1)
    history.round(30, offsets(390, 100), members=1)
    return history


def uneven() -> History:
    """11 messages in a round, of which 8 are read; requests that took an odd number of milliseconds."""
    history = History().rounds(-30, 0, offsets(100, 100), members=1)
    return history.rounds(15, 75, offsets(111, 108), members=1)


CASES = (
    Case(
        "31 born at the edge",
        "what waited before the topic was born proves nothing of the round in which it was",
        lambda: _back(-60),
        (unknown(0, Reason.START_UNKNOWN),),
        SECONDS,
    ),
    Case(
        "31 born before the edge",
        "nor of the rounds after it",
        lambda: _back(-75, rise=-30),
        (unknown(0, Reason.START_UNKNOWN),),
        {**SECONDS, "lagThreshold": "29"},
    ),
    Case(
        "31 born within",
        "nor when it was born later",
        lambda: _back(-30),
        (unknown(0, Reason.START_UNKNOWN),),
        SECONDS,
    ),
    Case(
        "31 absent within the gap",
        "nor when it is not known to be new",
        lambda: _back(-60, absent=3, silent=(-90, -75)),
        (unknown(0, Reason.START_UNKNOWN),),
        {**SECONDS, "maxGapSeconds": "60"},
    ),
    Case(
        "31 recreated and read",
        "ends of an earlier topic prove nothing of what was read up since",
        recreated_and_read,
        (unknown(105, Reason.START_UNKNOWN),),
        {**SECONDS, "lagThreshold": "100"},
    ),
    Case(
        "31 fallen and read",
        "nor do those from before the end fell",
        fallen_and_read,
        (unknown(105, Reason.START_UNKNOWN),),
        {**SECONDS, "lagThreshold": "100"},
    ),
    Case(
        "31 read up beside",
        "what was read up to the end of a round has not waited since",
        read_up_beside,
        (sustained(105, 105.0, time_lag=TimeLag(90_000, 105_000, 105_000)),),
        SECONDS,
    ),
    Case(
        "31 missing once",
        "a partition that was missing in one round is bridged",
        missing_once,
        (sustained(0, 60.0),),
        {**SECONDS, "sustainSeconds": "90"},
    ),
    Case(
        "31 missing once beside",
        "another partition that was not is no part of that",
        lambda: missing_once(0),
        (sustained(0, 60.0),),
        {**SECONDS, "sustainSeconds": "90"},
    ),
    Case(
        "31 one millisecond",
        "one millisecond above the threshold is above it",
        stopped_a_little_later,
        (calm(150.001, active=True, span=45.0), sustained(165.001, 495.003, span=60.0)),
        {**SECONDS, "lagThreshold": "90"},
    ),
    Case(
        "31 expired",
        "a round without a commit ends what has waited, under latest",
        expired_once,
        (calm(180, active=True, reason=Reason.NOT_YET),),
        {**SECONDS, "lagThreshold": "100"},
    ),
    Case(
        "31 same estimate",
        "of two with the same estimate the one is shown that has waited longer at least",
        same_estimate,
        (sustained(105, 90.0, time_lag=TimeLag(90_000, 90_000, 105_000)),),
        SECONDS,
    ),
    Case(
        "31 same lower",
        "and then the one that may have waited longer",
        same_lower,
        (sustained(105, 90.0, time_lag=TimeLag(75_000, 90_000, 105_000)),),
        SECONDS,
    ),
    Case(
        "31 fallen at last",
        "an end that fell in the newest round proves nothing",
        fallen_at_last,
        (unknown(30, Reason.START_UNKNOWN),),
        {**SECONDS, "lagThreshold": "20"},
    ),
    Case(
        "31 uneven",
        "estimates are whole milliseconds, rounded down",
        uneven,
        (sustained(75, 64.09, time_lag=TimeLag(60_000, 64_090, 75_000)),),
        {**SECONDS, "sustainSeconds": "30"},
    ),
)
