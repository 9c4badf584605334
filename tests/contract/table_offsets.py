"""Histories 11 to 18 and 25: from offsets to lag, and what the partitions allow."""

from __future__ import annotations

from collections.abc import Callable

from lagscale.domain.lag.samples import Offsets
from lagscale.domain.verdict.contract import Reason
from tests.contract.case import Case, calm, every, sustained, unknown
from tests.contract.histories import History, offsets

EARLIEST = {"offsetResetPolicy": "earliest"}


def steady(*partitions: Offsets | int, known: bool = False) -> History:
    """The same answers at 0 to 60 s."""
    history = History().known(*[0 for _ in partitions]) if known else History()
    return history.rounds(0, 60, *partitions)


def recreated() -> History:
    """Ends and commits of 500, then a new id: a commit beyond the end, and one below it."""
    history = History().rounds(0, 30, offsets(500, 500), offsets(500, 500))
    history.round(45, offsets(20, 500), offsets(150, 100), new_id=True)
    return history.rounds(60, 120, offsets(20, 500), offsets(150, 100))


def shrunk() -> History:
    """Six partitions with lag become three of a new topic."""
    history = History().known(0, 0, 0, 0, 0, 0).rounds(0, 15, 150, 150, 150, 150, 150, 150)
    history.round(30, offsets(0, None), offsets(0, None), offsets(0, None), new_id=True)
    return history.rounds(45, 90, offsets(0, None), offsets(0, None), offsets(0, None))


def grown() -> History:
    """Four partitions become six; the new ones hold 50 messages and no commit."""
    history = History().known(0, 0, 0, 0).rounds(0, 60, 700, 0, 0, 0)
    return history.rounds(75, 90, 700, 0, 0, 0, offsets(50, None), offsets(50, None))


def on_five(lag: int) -> Callable[[], History]:
    return lambda: steady(lag - 4, 1, 1, 1, 1, known=True)


def jumps_back(before: int) -> History:
    """The commit jumps back by 10,000 at t = 0, after 120 s of a lag."""
    history = History().rounds(-240, -135, 0).rounds(-120, -15, before)
    end = history.topics[1].last[0].end
    return history.rounds(0, 120, offsets(end, end - before - 10_000))


CASES = (
    Case(
        "11",
        "uncommitted under latest is active",
        lambda: steady(Offsets(0, 1_000_000, None, 1_000_000)),
        (unknown(45, Reason.ACTIVITY_UNDETERMINED), calm(60, active=True, total=0)),
    ),
    Case(
        "11 zero",
        "unless that is to count 0",
        lambda: steady(Offsets(0, 1_000_000, None, 1_000_000)),
        (calm(0, total=0), calm(60, total=0)),
        {"scaleToZeroOnInvalidOffset": "true"},
    ),
    Case(
        "11 zero members",
        "that it is to count 0 does not depend on members",
        lambda: History().rounds(0, 60, Offsets(0, 1_000_000, None, 1_000_000), members=1),
        (calm(0, total=0), calm(60, total=0)),
        {"scaleToZeroOnInvalidOffset": "true"},
    ),
    Case(
        "11 earliest",
        "all that can be read, never what was deleted",
        lambda: steady(Offsets(990_000, 1_000_000, None, 1_000_000)),
        (sustained(60, 10_000),),
        EARLIEST,
    ),
    Case(
        "11 earliest zero",
        "the key for invalid offsets has no effect under earliest",
        lambda: steady(Offsets(999_950, 1_000_000, None, 1_000_000)),
        (calm(60, active=True, total=50),),
        {**EARLIEST, "scaleToZeroOnInvalidOffset": "true"},
    ),
    Case("11 empty", "an empty log", lambda: steady(Offsets(70, 70, None, 70)), (calm(0, total=0), calm(60))),
    Case(
        "12",
        "commits of some partitions, latest",
        lambda: steady(offsets(100, 90), offsets(0, None), offsets(40, None)),
        (calm(60, active=True, total=10),),
    ),
    Case(
        "12 earliest",
        "commits of some partitions, earliest",
        lambda: steady(offsets(100, 90), offsets(0, None), offsets(40, None)),
        (calm(60, active=True, total=50),),
        EARLIEST,
    ),
    Case(
        "12 first",
        "a first commit begins an island: before it lag was 0",
        lambda: History().rounds(-120, 45, offsets(200, None)).rounds(60, 60, offsets(200, 0), members=1),
        (calm(60, active=True, reason=Reason.NOT_YET, span=0, start_known=True, total=200),),
    ),
    Case("13", "a commit below the log start", lambda: steady(Offsets(900, 1000, 100, 1000)), (calm(60, active=True, total=100),)),
    Case("13 lost", "the same above the level", lambda: steady(Offsets(899, 1000, 100, 1000)), (sustained(60, 101),)),
    Case("13 empty", "all of it was deleted", lambda: steady(Offsets(1000, 1000, 100, 1000)), (calm(0, total=0),)),
    Case(
        "14",
        "a commit beyond the end in one sample",
        lambda: (
            History()
            .known(0, 0)
            .rounds(0, 30, offsets(1000, 1000), 150)
            .rounds(45, 45, offsets(1000, 1005), 150)
            .rounds(60, 60, offsets(1010, 1010), 150)
        ),
        (calm(45, total=150, lag=150), sustained(60, 150)),
    ),
    Case("15", "a topic created again, latest", recreated, (calm(30), calm(60, total=50))),
    Case(
        "15 earliest",
        "a topic created again, earliest: its first partition is bounded from there",
        recreated,
        (
            calm(45, total=70),
            calm(75),
            calm(90, active=True, total=70),
        ),
        {**EARLIEST, "activationSustainSeconds": "45", "activationLagThreshold": "30"},
    ),
    Case(
        "15 bounded",
        "the reset begins a new island, and is known to have begun",
        lambda: (
            history := History().rounds(0, 30, offsets(500, 300)),
            history.round(45, offsets(200, 300), new_id=True),
            history.rounds(60, 120, offsets(200, 300)),
        )[0],
        (
            unknown(30, Reason.START_UNKNOWN, span=30, start_known=False),
            *every(45, 90, calm, active=True, reason=Reason.NOT_YET, start_known=True),
            calm(90, active=True, span=45),
            sustained(105, 200, span=60, start_known=True),
        ),
        {**EARLIEST, "activationSustainSeconds": "0"},
    ),
    Case(
        "15 skew",
        "a commit beyond the end in the first sample ever",
        lambda: steady(offsets(20, 500)),
        (calm(0, total=0), calm(60, total=0)),
        EARLIEST,
    ),
    Case("16", "six partitions become three", shrunk, (calm(15, partitions=6, total=900), calm(30, partitions=3, total=0, missing=0), calm(90))),
    Case("17", "new partitions, latest", grown, (sustained(60, 400), sustained(75, 600)), {"allowIdleConsumers": "false"}),
    Case(
        "17 earliest",
        "new partitions, earliest",
        grown,
        (sustained(60, 400, total=700), sustained(75, 600, total=800), sustained(90, 600)),
        {"allowIdleConsumers": "false", **EARLIEST},
    ),
    Case("17 idle", "new partitions, earliest, no cap", grown, (sustained(60, 700), sustained(75, 800)), EARLIEST),
    *(
        Case(f"18 {lag}", "the cap", on_five(lag), (sustained(60, value),), {"allowIdleConsumers": idle, "lagThreshold": "5"})
        for lag, idle, value in ((29, "false", 25), (24, "false", 24), (30, "false", 25), (29, "true", 29))
    ),
    Case(
        "20",
        "as many replicas as can hold members for all partitions",
        lambda: steady(*[5000] * 24, known=True),
        (sustained(60, 600),),
        {"allowIdleConsumers": "false", "consumersPerReplica": "4"},
    ),
    Case(
        "25",
        "the commit jumps back",
        lambda: jumps_back(0),
        (calm(0, span=0, start_known=True, total=10_000), calm(45), sustained(60, 10_000)),
    ),
    Case("25 on", "the same above the level", lambda: jumps_back(600), (sustained(-15, 600), *every(0, 120, sustained, 10_600))),
    Case(
        "25 forward",
        "the commit jumps to the end",
        lambda: History().known().rounds(0, 75, 5000).rounds(90, 90, 0),
        (sustained(75, 5000), calm(90, island=None)),
    ),
)  # fmt: skip
