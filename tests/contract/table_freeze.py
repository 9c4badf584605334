"""History 42: what a monitor keeps that is frozen at an instant. The policy's own `holdSeconds` is 0 and of no account."""

from __future__ import annotations

from lagscale.domain.verdict.contract import Answer
from tests.contract.case import Case, Holding
from tests.contract.histories import History, ms
from tests.contract.table_hold import at_work, lasting

CASES = (
    Case(
        "42",
        "frozen while sustained, and at any time after the last sample",
        lambda: lasting(600),
        (
            Holding(600, Answer(500.0, True, ms(600))),
            Holding(610, Answer(500.0, True, ms(600))),
            Holding(700, Answer(500.0, True, ms(600))),
            Holding(600 + 3601, Answer(500.0, True, ms(600))),
            Holding(600 + 80_000, Answer(500.0, True, ms(600))),
            Holding(600 + 86_401, None),
        ),
    ),
    Case(
        "42 of the past",
        "samples after the freeze are of no account",
        lambda: History().known().rounds(0, 600, 500).rounds(615, 900, 9000),
        (Holding(607, Answer(500.0, True, ms(600))), Holding(900, Answer(9000.0, True, ms(900)))),
    ),
    Case(
        "42 window",
        "the greatest of the 300 s before the last known instant",
        lambda: lasting(300, calm_until=600),
        (
            Holding(300, Answer(500.0, True, ms(300))),
            Holding(600, Answer(500.0, True, ms(600))),
            Holding(700, Answer(500.0, True, ms(600))),
        ),
    ),
    Case(
        "42 window of scaleDownStabilization",
        "and of a longer one",
        lambda: lasting(300, calm_until=900),
        (Holding(900, Answer(500.0, True, ms(900))),),
        {"scaleDownStabilization": "600"},
    ),
    Case(
        "42 calm",
        "inactive is never held",
        lambda: lasting(300, calm_until=615),
        (Holding(615, None), Holding(100_000, None)),
    ),
    Case(
        "42 members",
        "unless the newest round knows members",
        at_work,
        (Holding(300, Answer(0.0, True, ms(300))), Holding(4000, Answer(0.0, True, ms(300)))),
    ),
    Case("42 nothing", "no sample at all", History, (Holding(100, None),)),
    Case(
        "42 too short",
        "a history in which nothing was known yet",
        lambda: History().rounds(0, 45, 500),
        (Holding(45, None),),
    ),
)
