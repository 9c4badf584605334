"""Histories 41 and 54: what is told while lag is unknown."""

from __future__ import annotations

from lagscale.domain.verdict.contract import Answer
from tests.contract.case import Case, Holding
from tests.contract.histories import History, ms, offsets

HOUR = {"holdSeconds": "3600"}


def lasting(last: int, *, calm_until: int | None = None) -> History:
    """500 from t = 0 to `last`, then 0 to `calm_until`, then no samples."""
    history = History().known().rounds(0, last, 500)
    return history if calm_until is None else history.rounds(last + 15, calm_until, 0)


def fenced() -> History:
    """Four members' worth of lag, then less; at 255 s the members and half of the partitions are gone."""
    history = History().known(0, 0, 0, 0).rounds(0, 180, 200, 200, 200, 200, members=4)
    return history.rounds(195, 240, 50, 50, 50, 50, members=4).rounds(255, 600, 50, 50, None, None)


def at_work() -> History:
    history = History()
    for at in range(0, 301, 15):
        history.round(at, offsets(1000 + at, 1000 + at), members=2)
    return history


CASES = (
    Case(
        "41",
        "sustained, then no samples",
        lambda: lasting(600),
        (
            Holding(660, Answer(500.0, True)),
            Holding(700, Answer(500.0, True, ms(600))),
            Holding(600 + 3600, Answer(500.0, True, ms(600))),
            Holding(600 + 3601, None),
        ),
        HOUR,
    ),
    Case(
        "41 calm",
        "sustained and calm after it, 300 s behind the last known instant",
        lambda: lasting(300, calm_until=405),
        (Holding(500, Answer(500.0, True, ms(405))),),
        HOUR,
    ),
    Case("41 long calm", "calm for longer than 300 s", lambda: lasting(300, calm_until=705), (Holding(800, None),), HOUR),
    Case(
        "41 edge",
        "the last active instant exactly 300 s behind",
        lambda: lasting(300, calm_until=600),
        (Holding(700, Answer(500.0, True, ms(600))),),
        HOUR,
    ),
    Case(
        "41 beyond",
        "and one sample further",
        lambda: lasting(300, calm_until=615),
        (Holding(700, None),),
        HOUR,
    ),
    Case(
        "41 both edges",
        "asked holdSeconds after the last known instant, the last active one 300 s before it",
        lambda: lasting(300, calm_until=600),
        (Holding(600 + 3600, Answer(500.0, True, ms(600))),),
        HOUR,
    ),
    Case(
        "41 work",
        "calm and at work, then no samples",
        at_work,
        (Holding(300, Answer(0.0, True)), Holding(400, Answer(0.0, True, ms(300)))),
        {**HOUR, "workSeconds": "60"},
    ),
    Case(
        "41 members",
        "inactive, but the newest round knows members",
        lambda: History().rounds(0, 300, 0, members=1),
        (Holding(300, Answer(0.0, False)), Holding(400, Answer(0.0, True, ms(300)))),
        HOUR,
    ),
    Case("41 idle", "inactive is never held", lambda: History().rounds(0, 300, 0), (Holding(400, None),), HOUR),
    Case("41 fresh", "no known instant", lambda: History().rounds(0, 15, 500), (Holding(15, None), Holding(100, None)), HOUR),
    Case(
        "54",
        "readings of 0 for less than 300 s may be those of a lost coordinator",
        fenced,
        (
            Holding(315, Answer(800.0, True, ms(300))),
            Holding(540, Answer(800.0, True, ms(300))),
            Holding(555, Answer(100.0, True)),
        ),
        HOUR,
    ),
    Case("41 off", "nothing is held", lambda: lasting(600), (Holding(600, Answer(500.0, True)), Holding(700, None))),
)  # fmt: skip
