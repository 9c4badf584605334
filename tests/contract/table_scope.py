"""Histories 22, 36 and 37 as the scraper writes them: topics that come into a monitor's scope, and one that is empty."""

from __future__ import annotations

from lagscale.domain.lag.rounds import Note, TargetRound, build_row
from lagscale.domain.verdict.contract import Reason
from tests.contract.case import Case, calm, every, sustained, unknown
from tests.contract.histories import History, Topic, ms

TOTAL = {"persistenceScope": "total"}


def not_named(history: History, at: float, note: Note, topic: int = 2) -> History:
    """An answer that did not name the topic: a round of it without partitions."""
    rows = history.topics.setdefault(topic, Topic()).rows
    rows.append(build_row(rows[-1] if rows else None, TargetRound(ms(at), 1, (), notes=note)))
    return history


def appears(answered: float, note: Note = Note.NO_TOPIC, lag: int = 500) -> History:
    """A second topic from t = 0 on, while the first is calm; an answer before did not name it."""
    history = not_named(History().rounds(-120, 75, 0), answered, note)
    return history.rounds(0, 75, lag, topic=2)


def comes_back() -> History:
    """The second topic was measured, left the pattern, and appears again under another id."""
    history = History().rounds(-300, 75, 0).rounds(-300, -240, 150, topic=2)
    not_named(history, -15, Note.NO_TOPIC)
    history.round(0, 500, topic=2, new_id=True)
    return history.rounds(15, 75, 500, topic=2)


def born_beside_a_missing_one() -> History:
    """A topic appears with 500 while the other one, is missing for two minutes."""
    history = History().rounds(-240, -120, 0, topic=1)
    history.rounds(-105, 0, None, topic=1)
    history.round(0, 500, topic=2, first_seen=True)
    for at in range(15, 76, 15):
        history.round(at, 0, topic=1)
        history.round(at, 500, topic=2)
    return history


def born_one_after_the_other() -> History:
    """Two topics appear, 15 s apart, with 500 on the first."""
    history = History()
    history.round(0, 500, topic=1, first_seen=True)
    for at in range(15, 61, 15):
        history.round(at, 500, topic=1)
        history.round(at, 0, topic=2, first_seen=at == 15)
    return history


CASES = (
    Case(
        "37 missing",
        "a total that begins with a birth is open where a partition is missing: what it had is not known",
        born_beside_a_missing_one,
        (unknown(15, Reason.START_UNKNOWN, span=15.0, start_known=False), sustained(60, 500)),
        {"persistenceScope": "total"},
    ),
    Case(
        "37 later",
        "what is born later had nothing before",
        born_one_after_the_other,
        (calm(45, span=45.0, start_known=True), sustained(60, 500)),
        {"persistenceScope": "total"},
    ),
    Case(
        "37 pattern",
        "a topic appears under a pattern; the answer 15 s before did not name it",
        lambda: appears(-15),
        (calm(-15, partitions=1, absent=(2,)), *every(0, 45, calm, start_known=True, reason=Reason.NOT_YET), sustained(60, 500)),
    ),
    Case(
        "37 pattern, total",
        "the total of such a topic",
        lambda: appears(-15),
        (*every(0, 45, calm, start_known=True), sustained(60, 500)),
        TOTAL,
    ),
    Case(
        "37 pattern, gap",
        "the answer before is 50 s old: when the lag began is not known",
        lambda: appears(-50),
        (*every(0, 45, unknown, Reason.START_UNKNOWN, start_known=False), sustained(60, 500)),
    ),
    Case(
        "37 pattern, again",
        "a topic left a pattern and came back as another one: what was before does not count",
        comes_back,
        (*every(0, 45, calm, start_known=True, reason=Reason.NOT_YET), sustained(60, 500)),
    ),
    Case(
        "22 commits",
        "a group commits on a further topic: it counts from then on, and when its lag began is not known",
        lambda: appears(-15, Note.NO_COMMITS),
        (
            calm(-15, partitions=1, absent=()),
            *every(0, 45, unknown, Reason.START_UNKNOWN, start_known=False, partitions=2),
            sustained(60, 500),
        ),
    ),
    Case(
        "22 commits, no lag",
        "without lag there a further topic leaves the monitor calm",
        lambda: appears(-15, Note.NO_COMMITS, lag=0),
        every(-15, 60, calm),
    ),
    Case(
        "36 group",
        "a group with commits on nothing any more: nothing to measure, never calm",
        lambda: not_named(History().rounds(-60, -15, 0), 0, Note.NO_COMMITS, topic=1),
        (unknown(0, Reason.NOTHING_TO_MEASURE, partitions=0),),
    ),
)  # fmt: skip
