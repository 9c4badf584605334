"""Histories 21, 29 and 35 to 37: several topics, missing partitions, births."""

from __future__ import annotations

from lagscale.domain.verdict.contract import Reason
from tests.contract.case import Case, calm, every, sustained, unknown
from tests.contract.histories import History, Topic

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


def half_seen(lag: int) -> History:
    """P2 missing from each second round."""
    history = History().known(0, 0, 0)
    for number, at in enumerate(range(0, 76, 15)):
        history.round(at, 20, 0, None if number % 2 else lag)
    return history


def half_stale(members: int | None) -> History:
    history = (
        History().rounds(-120, -15, *[0] * 12, members=members).rounds(0, 60, 100_000, *[600] * 11, members=members)
    )
    return history.rounds(75, 135, *[None] * 6, *[600] * 6, members=members)


def appears(*, first_seen: bool) -> History:
    """A second topic with 500 messages, while the first is calm."""
    history = History().rounds(-120, 75, 0)
    history.round(0, 500, topic=2, first_seen=first_seen)
    return history.rounds(15, 75, 500, topic=2)


def excluded() -> History:
    history = History()
    for at in range(0, 61, 15):
        history.round(at, 0, 0, 0, 0, 0, 0, excluded=range(6))
    return history


def half_seen_total() -> History:
    """80 on each of two partitions; 75 s later 120 on the first, with 50 messages produced, and the other missing."""
    history = History().known(0, 0).rounds(0, 0, 80, 80)
    history.round(75, 120, None, produced=50)
    return history


def gone_and_back() -> History:
    """The second of two partitions is above the level, vanishes for one round with a new id, and comes back."""
    history = History().known(0, 0).rounds(0, 0, 0, 150)
    history.round(15, 0, new_id=True)
    return history.rounds(30, 90, 0, 150)


def half_unmeasured(members: int | None) -> History:
    """One topic above the level, and one that was registered and not polled yet."""
    history = History().rounds(-120, -15, 0, members=members).rounds(0, 60, 600, members=members)
    history.topics[2] = Topic()
    return history


def back_after_absence() -> History:
    """150 messages wait; the topic is unknown for 60 s, and then there under the same id with as many."""
    history = History().known(0).rounds(0, 30, 150)
    for at in range(45, 106, 15):
        history.round(at, absent=True)
    return history.rounds(150, 210, 150)


CASES = (
    Case(
        "21 young",
        "one topic is above the threshold for a moment, another one since an unknown time",
        lambda: (
            History().rounds(-120, 0, 0).rounds(15, 30, 120, members=1).rounds(0, 30, 150, topic=2, members=1)
        ),
        (unknown(30, Reason.START_UNKNOWN, start_known=False),),
    ),
    Case("21", "two topics below the level", two_topics, (calm(60, active=True, partitions=2, total=160),)),
    Case("21 total", "their total above it", two_topics, (calm(45), sustained(60, 160), sustained(120, 160)), TOTAL),
    Case(
        "21 alternating",
        "each missing in every second round",
        lambda: two_topics(alternating=True),
        # At t = 0 the first topic's newest sample is still the calm one: the total is 80 until 15 s.
        (calm(60, active=True, span=45), sustained(75, 160, start_known=True, missing=0), sustained(120, 160)),
        TOTAL,
    ),
    Case(
        "21 absent",
        "one of two topics does not exist",
        one_absent,
        (calm(45, absent=(2,)), sustained(60, 150, absent=(2,), partitions=1)),
    ),
    Case("21 both absent", "neither exists", lambda: one_absent(both=True), (unknown(60, Reason.NO_TOPIC, absent=(1, 2)),)),
    Case("29", "P2 missing from each second round", lambda: half_seen(0), every(0, 60, calm, total=20, missing=0)[:4]),
    Case(
        "29 lagging",
        "P2's last known lag is still fresh",
        lambda: half_seen(150),
        (calm(45), sustained(60, 170, missing=0), sustained(75, 170, span=60, missing=0)),
    ),
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
    Case(
        "35 unmeasured",
        "a target that was never polled counts as not fresh",
        lambda: half_unmeasured(11),
        (unknown(45, Reason.NO_DATA, missing=0), sustained(60, 1100, partitions=1, missing=0, total=600)),
    ),
    Case(
        "35 unmeasured, members not known",
        "a target that was never polled, and nobody knows the members",
        lambda: half_unmeasured(None),
        (unknown(60, Reason.MEMBERS_UNKNOWN, missing=0),),
    ),
    Case("36", "no partition left", excluded, (unknown(60, Reason.NOTHING_TO_MEASURE, partitions=0),)),
    Case(
        "37",
        "a topic is born",
        lambda: appears(first_seen=True),
        (*every(0, 45, calm, start_known=True, reason=Reason.NOT_YET), sustained(60, 500)),
    ),
    Case(
        "37 gap",
        "a topic appears after 50 s without metadata",
        lambda: appears(first_seen=False),
        (*every(0, 45, unknown, Reason.START_UNKNOWN, start_known=False), sustained(60, 500)),
    ),
    Case(
        "37 partition",
        "a partition appears in the first round for 45 s: when its lag began is not known",
        lambda: History().known(0).rounds(30, 30, 0, 150, members=1),
        (unknown(30, Reason.START_UNKNOWN, span=0, start_known=False, partitions=2),),
    ),
    Case("37 total", "the total of a topic that is born", lambda: appears(first_seen=True), (*every(0, 45, calm, start_known=True), sustained(60, 500)), TOTAL),
    Case(
        "total in a hole",
        "a partition not seen since before the hole proves nothing of the total in it",
        half_seen_total,
        (unknown(75, Reason.MISSING, missing=1, span=0, start_known=False),),
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
        "37 same id",
        "a topic that was gone and came back after a hole: when its lag began is not known",
        back_after_absence,
        (
            calm(30, span=30, start_known=True),
            unknown(150, Reason.START_UNKNOWN, span=0, start_known=False),
            sustained(210, 150, span=60, start_known=False),
        ),
    ),
    Case(
        "37 again",
        "a partition that went and came back is another one",
        gone_and_back,
        (calm(75, span=45, start_known=True), sustained(90, 150, span=60, start_known=True)),
        {"activationLagThreshold": "500"},
    ),
)  # fmt: skip
