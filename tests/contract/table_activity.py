"""Histories 28, 30 and 34: whether a workload has anything to do, and what wakes it."""

from __future__ import annotations

from lagscale.domain.verdict.contract import Answer, Reason
from tests.contract.case import Case, Holding, calm, every, unknown
from tests.contract.histories import History, offsets


def working(first: int, last: int, *, then_until: int, missing: tuple[int, ...] = ()) -> History:
    """Commits and ends advance by 500 each sample, then stand still."""
    history = History()
    moved = 0
    for at in range(first, then_until + 1, 15):
        moved += 500 if first < at <= last else 0
        history.round(at, None if at in missing else offsets(1000 + moved, 1000 + moved))
    return history


def waiting(members: int | None) -> History:
    """Twelve partitions, one never seen, 5 messages on each of the others."""
    history = History().rounds(-30, -15, *[0] * 11, None, members=members)
    return history.rounds(0, 75, *[5] * 11, None, members=members)


def stale_backlog() -> History:
    """5 messages on a partition that is then missing, none on the other."""
    return History().rounds(-120, 0, 5, 0).rounds(15, 45, None, 0)


def uncommitted_then_backlog() -> History:
    """5 messages that nobody committed, and from t = 0 on 5 that wait beside them."""
    return History().rounds(-120, -15, offsets(5, None), 0).rounds(0, 60, offsets(5, None), 5)


def absent_between() -> History:
    """A consumer that works until 60 s; its topic is absent at 75 s, and back under the same id, all read."""
    history = working(0, 60, then_until=60)
    history.round(75, absent=True)
    return history.rounds(90, 150, offsets(3000, 3000))


def hole(seconds: int, *, moved: int = 0) -> History:
    history = History().rounds(-120, 0, offsets(1000, 1000))
    return history.rounds(seconds, seconds + 15, offsets(1000 + moved, 1000 + moved))


def one_gone() -> History:
    """A calm topic, and a young one that is gone at once."""
    history = History().rounds(-120, 75, 0)
    history.round(45, 0, topic=2)
    history.round(60, topic=2, absent=True)
    history.round(75, topic=2, absent=True)
    return history


def unseen_since() -> History:
    """Two calm topics; the second is created again, and its partition is missing from then on."""
    history = History().rounds(-120, 30, 0).rounds(-120, 0, 0, topic=2)
    history.round(15, None, topic=2, new_id=True)
    history.round(30, None, topic=2)
    return history


def waits_beside_uncommitted() -> History:
    """One partition never committed; on the other 5 messages wait from t = 30 on."""
    history = History().rounds(-120, 15, 0, offsets(40, None))
    return history.rounds(30, 105, 5, offsets(40, None))


CASES = (
    Case(
        "28",
        "a consumer that keeps up works",
        lambda: working(0, 300, then_until=420),
        (
            unknown(0, Reason.ACTIVITY_UNDETERMINED),
            *every(15, 300, calm, active=True),
            *every(315, 345, calm, active=True),
            calm(360),
            calm(420),
        ),
        {"workSeconds": "60"},
    ),
    Case(
        "28 missing",
        "the last advance is seen one sample later when one is missing",
        lambda: working(0, 300, then_until=420, missing=(300,)),
        (*every(315, 360, calm, active=True), calm(375)),
        {"workSeconds": "60"},
    ),
    Case(
        "28 young",
        "30 s old, nothing moves",
        lambda: working(0, 0, then_until=75),
        (*every(0, 45, unknown, Reason.ACTIVITY_UNDETERMINED), calm(60)),
        {"workSeconds": "60"},
    ),
    Case(
        "28 absent",
        "work before the topic was absent is work",
        absent_between,
        (calm(90, active=True), calm(105, active=True), calm(120), calm(150)),
        {"workSeconds": "60"},
    ),
    Case("28 off", "without the rule of work", lambda: working(0, 0, then_until=30), (calm(0), calm(30))),
    Case("28 hole", "equal commits on both sides of 300 s", lambda: hole(300), (calm(300), calm(315)), {"workSeconds": "60"}),
    Case(
        "28 hole with work",
        "the commit moved in the hole",
        lambda: hole(300, moved=1),
        (calm(300, active=True),),
        {"workSeconds": "60"},
    ),
    Case(
        "30",
        "a little backlog, no members",
        lambda: History().known().rounds(0, 120, 3),
        (*every(0, 15, calm), *every(30, 120, calm, active=True, reason=Reason.NO_BREACH)),
        {"activationSustainSeconds": "30"},
    ),
    Case(
        "30 member",
        "a little backlog, one member",
        lambda: History().known().rounds(0, 120, 3, members=1),
        every(0, 120, calm, active=True),
        {"activationSustainSeconds": "30"},
    ),
    Case(
        "30 open",
        "a little backlog, nothing known before",
        lambda: History().rounds(0, 120, 3),
        (*every(0, 15, unknown, Reason.ACTIVITY_UNDETERMINED), *every(30, 120, calm, active=True)),
        {"activationSustainSeconds": "30"},
    ),
    Case(
        "11 backlog",
        "an uncommitted partition counts 1 in a backlog, whatever waits there",
        uncommitted_then_backlog,
        (*every(0, 45, calm), calm(60, active=True)),
        {"activationLagThreshold": "1"},
    ),
    Case(
        "34",
        "waking",
        lambda: waiting(0),
        (
            unknown(45, Reason.MISSING, missing=1, activates_from_zero=False),
            unknown(60, Reason.MISSING, missing=1, activates_from_zero=True, total=55),
            Holding(45, None),
            Holding(60, Answer(100.0, True)),
        ),
    ),
    Case("34 members", "members are there", lambda: waiting(3), (unknown(60, Reason.MISSING, activates_from_zero=False), Holding(60, None))),
    Case("34 unknown", "members not known", lambda: waiting(None), (unknown(60, Reason.MISSING, activates_from_zero=False), Holding(60, None))),
    Case(
        "34 stale",
        "a backlog that is stale by now proves nothing",
        stale_backlog,
        (unknown(61, Reason.MISSING, missing=1, total=0, activates_from_zero=False), Holding(61, None)),
    ),
    Case(
        "28 gone",
        "a topic without partitions needs no sample to be called idle",
        one_gone,
        (calm(75, absent=(2,), partitions=1),),
        {"workSeconds": "60"},
    ),
    Case(
        "28 other id",
        "a topic created again and not sampled since: nothing is known of its work",
        unseen_since,
        (calm(0), unknown(15, Reason.ACTIVITY_UNDETERMINED, missing=0), unknown(30, Reason.ACTIVITY_UNDETERMINED, missing=0)),
        {"workSeconds": "60"},
    ),
    Case(
        "11 zero waits",
        "a partition without a commit is no backlog of the past either",
        waits_beside_uncommitted,
        (calm(15, total=0), *every(30, 75, calm, total=5), calm(90, active=True), calm(105, active=True)),
        {"scaleToZeroOnInvalidOffset": "true"},
    ),
)  # fmt: skip
