"""Scenarios A3 and A5: the printed example, three shapes of one recorded history, and a group that is half new."""

from __future__ import annotations

from lagscale.domain.lag.samples import Offsets
from lagscale.domain.lag.time_lag import TimeLag
from lagscale.domain.verdict.contract import Reason
from tests.contract.case import Case, calm, sustained
from tests.contract.histories import History, offsets
from tests.contract.table_value import kept


def printed() -> History:
    """Lag of 15,000, 12,000, 8,000 and 2,000 in minutes 0 to 3, read by two members that catch up."""
    history = History()
    for minute in range(-10, 0):
        history.round(60 * minute, 0, members=2)
    for minute, lag in enumerate((15_000, 12_000, 8_000, 2_000)):
        history.round(60 * minute, lag, members=2)
    return history


def recorded() -> History:
    """600 for two minutes, 1,500 for seven, 2,500 for four, and then nothing."""
    history = History().known()
    return history.rounds(0, 105, 600).rounds(120, 525, 1_500).rounds(540, 765, 2_500).rounds(780, 1_380, 0)


PRINTED = {"lagThreshold": "1000", "samplingInterval": "60", "maxGapSeconds": "150", "staleAfterSeconds": "180"}
SHAPES = (
    {"lagThreshold": "200", "sustainSeconds": "60", "scaleUpStabilization": "30"},
    {"lagThreshold": "1000", "sustainSeconds": "300", "scaleUpStabilization": "120"},
    {"lagThreshold": "2000", "sustainSeconds": "180", "scaleDownStabilization": "600"},
)


def never_committed() -> History:
    """A steady group 20 s behind, and a partition without a commit on which messages have waited for long."""
    history = History()
    for at in range(-300, 61, 15):
        end = 100_000 + 50 * at
        history.round(at, offsets(end, end - 1_000), Offsets(0, 5_000 + at, None, 5_000 + at), members=1)
    return history


CASES = (
    Case(
        "31 uncommitted",
        "without a commit, and under latest, nothing has waited",
        never_committed,
        (calm(60, active=True, reason=Reason.NO_BREACH, time_lag=TimeLag(15_000, 20_000, 30_000)),),
        {"metric": "timeLag", "lagThreshold": "100"},
    ),
    Case(
        "31 uncommitted earliest",
        "under earliest it has, since before anything stored",
        never_committed,
        (sustained(60, 360, time_lag=TimeLag(360_000, 360_000, None)),),
        {"metric": "timeLag", "lagThreshold": "100", "offsetResetPolicy": "earliest"},
    ),
    Case(
        "A3 five minutes",
        "a backlog that goes never lasts that long",
        printed,
        tuple(calm(60 * minute, active=True, reason=Reason.NOT_YET) for minute in range(4)),
        {**PRINTED, "sustainSeconds": "300"},
    ),
    Case(
        "A3 two minutes",
        "it has lasted at minute 2",
        printed,
        (calm(60, active=True), sustained(120, 8_000), sustained(180, 2_000)),
        {**PRINTED, "sustainSeconds": "120"},
    ),
    Case(
        "A3 draining",
        "and is seen to drain: no more replicas than members",
        printed,
        (sustained(120, 2_000, recovering=True), sustained(180, 2_000, recovering=True)),
        {**PRINTED, "sustainSeconds": "120", "drainSeconds": "180"},
    ),
    Case(
        "A5 first",
        "a low threshold, soon",
        recorded,
        (sustained(60, 600), sustained(540, 1_500, raw=2_500.0), sustained(600, 2_500), calm(780)),
        SHAPES[0],
    ),
    Case(
        "A5 second",
        "a higher one, later, rising slowly",
        recorded,
        (calm(405, active=True), sustained(600, 1_500, raw=2_500.0), sustained(675, 2_500), calm(780)),
        SHAPES[1],
    ),
    Case(
        "A5 third",
        "the highest, which stays for ten minutes",
        recorded,
        (calm(600, active=True), sustained(720, 2_500), kept(780, 2_500), kept(1_365, 2_500), calm(1_380)),
        SHAPES[2],
    ),
)
