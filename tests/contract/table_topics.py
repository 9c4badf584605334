"""Histories 21, 26 to 30 and 34 to 37: several topics, holes, births, activity."""

from __future__ import annotations

from lagscale.domain.signal import Reason, Told
from tests.contract.case import Case, Holding, calm, every, sustained, unknown
from tests.contract.histories import History, offsets

TOTAL = {"persistenceScope": "total"}


def two_topics(*, alternating: bool = False) -> History:
    """80 on each of two topics; or each one's partition missing in every second round."""
    history = History().known(0).known(0, topic=2)
    for number, at in enumerate(range(0, 121, 15)):
        first, second = (80, None) if number % 2 else (None, 80)
        history.round(at, first if alternating else 80)
        history.round(at, second if alternating else 80, topic=2)
    return history


def one_absent(*, both: bool = False) -> History:
    history = History()
    for at in range(-120, 121, 15):
        if both:
            history.round(at, absent=True)
        else:
            history.round(at, 0 if at < 0 else 150)
        history.round(at, topic=2, absent=True)
    return history


def working(first: int, last: int, *, then_until: int, missing: tuple[int, ...] = ()) -> History:
    """Commits and ends advance by 500 each sample, then stand still."""
    history = History()
    moved = 0
    for at in range(first, then_until + 1, 15):
        moved += 500 if first < at <= last else 0
        history.round(at, None if at in missing else offsets(1000 + moved, 1000 + moved))
    return history


def half_seen(lag: int) -> History:
    """P2 missing from each second round."""
    history = History().known(0, 0, 0)
    for number, at in enumerate(range(0, 76, 15)):
        history.round(at, 20, 0, None if number % 2 else lag)
    return history


def waiting(members: int | None) -> History:
    """Twelve partitions, one never seen, 5 messages on each of the others."""
    history = History().rounds(-30, -15, *[0] * 11, None, members=members)
    return history.rounds(0, 75, *[5] * 11, None, members=members)


def half_stale(members: int | None) -> History:
    history = (
        History().rounds(-120, -15, *[0] * 12, members=members).rounds(0, 60, 100_000, *[600] * 11, members=members)
    )
    return history.rounds(75, 135, *[None] * 6, *[600] * 6, members=members)


def appears(*, born: bool) -> History:
    """A second topic with 500 messages, while the first is calm."""
    history = History().rounds(-120, 75, 0)
    history.round(0, 500, topic=2, born=born)
    return history.rounds(15, 75, 500, topic=2)


def hole(seconds: int, *, moved: int = 0) -> History:
    history = History().rounds(-120, 0, offsets(1000, 1000))
    return history.rounds(seconds, seconds + 15, offsets(1000 + moved, 1000 + moved))


def outside() -> History:
    history = History()
    for at in range(0, 61, 15):
        history.round(at, 0, 0, 0, 0, 0, 0, outside=range(6))
    return history


def half_seen_total() -> History:
    """80 on each of two partitions; 75 s later 120 on the first, with 50 messages produced, and the other missing."""
    history = History().known(0, 0).rounds(0, 0, 80, 80)
    history.round(75, 120, None, produced=50)
    return history


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


def gone_and_back() -> History:
    """The second of two partitions is above the level, vanishes for one round with a new id, and comes back."""
    history = History().known(0, 0).rounds(0, 0, 0, 150)
    history.round(15, 0, new_id=True)
    return history.rounds(30, 90, 0, 150)


CASES = (
    Case("21", "two topics below the level", two_topics, (calm(60, active=True, partitions=2, total=160),)),
    Case("21 total", "their total above it", two_topics, (calm(45), sustained(60, 160), sustained(120, 160)), TOTAL),
    Case(
        "21 alternating",
        "each missing in every second round",
        lambda: two_topics(alternating=True),
        # At t = 0 the first topic's newest sample is still the calm one: the total is 80 until 15 s.
        (calm(60, active=True, span=45), sustained(75, 160, bounded=True, missing=0), sustained(120, 160)),
        TOTAL,
    ),
    Case(
        "21 absent",
        "one of two topics does not exist",
        one_absent,
        (calm(45, absent=(2,)), sustained(60, 150, absent=(2,), partitions=1)),
    ),
    Case("21 both absent", "neither exists", lambda: one_absent(both=True), (unknown(60, Reason.NO_TOPIC, absent=(1, 2)),)),
    Case(
        "28",
        "a consumer that keeps up works",
        lambda: working(0, 300, then_until=420),
        (
            unknown(0, Reason.ACTIVITY_UNTOLD),
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
        (*every(0, 45, unknown, Reason.ACTIVITY_UNTOLD), calm(60)),
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
    Case("29", "P2 missing from each second round", lambda: half_seen(0), every(0, 60, calm, total=20, missing=0)[:4]),
    Case(
        "29 lagging",
        "P2's last known lag is still fresh",
        lambda: half_seen(150),
        (calm(45), sustained(60, 170, missing=0), sustained(75, 170, span=60, missing=0)),
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
        (*every(0, 15, unknown, Reason.ACTIVITY_UNTOLD), *every(30, 120, calm, active=True)),
        {"activationSustainSeconds": "30"},
    ),
    Case(
        "34",
        "waking",
        lambda: waiting(0),
        (
            unknown(45, Reason.MISSING, missing=1, wakes=False),
            unknown(60, Reason.MISSING, missing=1, wakes=True, total=55),
            Holding(45, None),
            Holding(60, Told(100.0, True)),
        ),
    ),
    Case("34 members", "members are there", lambda: waiting(3), (unknown(60, Reason.MISSING, wakes=False), Holding(60, None))),
    Case("34 unknown", "members not known", lambda: waiting(None), (unknown(60, Reason.MISSING, wakes=False), Holding(60, None))),
    Case(
        "35",
        "the value does not fall below what the members stand for",
        lambda: half_stale(11),
        (sustained(60, 106_600), sustained(120, 106_600, missing=0), sustained(135, 110_000, missing=6, total=3600)),
        {"targetLag": "10000"},
    ),
    Case(
        "35 unknown",
        "members not known",
        lambda: half_stale(None),
        (sustained(60, 106_600), unknown(135, Reason.MEMBERS_UNKNOWN, missing=6)),
        {"targetLag": "10000"},
    ),
    Case("36", "no partition left", outside, (unknown(60, Reason.NOTHING_TO_MEASURE, partitions=0),)),
    Case(
        "37",
        "a topic is born",
        lambda: appears(born=True),
        (*every(0, 45, calm, bounded=True, reason=Reason.NOT_YET), sustained(60, 500)),
    ),
    Case(
        "37 gap",
        "a topic appears after 50 s without metadata",
        lambda: appears(born=False),
        (*every(0, 45, unknown, Reason.OPEN_ISLAND, bounded=False), sustained(60, 500)),
    ),
    Case("37 total", "the total of a topic that is born", lambda: appears(born=True), (*every(0, 45, calm, bounded=True), sustained(60, 500)), TOTAL),
    Case(
        "total in a hole",
        "a partition not seen since before the hole proves nothing of the total in it",
        half_seen_total,
        (unknown(75, Reason.MISSING, missing=1, span=0, bounded=False),),
        TOTAL,
    ),
    Case(
        "total stale",
        "a total that is not fresh has no island",
        lambda: History().known().rounds(0, 60, 150),
        (sustained(120, 150, span=60), unknown(120.001, Reason.STALE, island=None)),
        TOTAL,
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
        (calm(0), unknown(15, Reason.ACTIVITY_UNTOLD, missing=0), unknown(30, Reason.ACTIVITY_UNTOLD, missing=0)),
        {"workSeconds": "60"},
    ),
    Case(
        "37 again",
        "a partition that went and came back is another one",
        gone_and_back,
        (calm(75, span=45, bounded=True), sustained(90, 150, span=60, bounded=True)),
        {"activationLagThreshold": "500"},
    ),
)  # fmt: skip
