"""History 24 and its neighbors: a commit that stands still under a running group."""

from __future__ import annotations

from lagscale.domain.lag.samples import Offsets
from lagscale.domain.verdict.contract import Reason
from tests.contract.case import Case, calm, sustained
from tests.contract.histories import History, offsets

STUCK = {"stuckAfterSeconds": "300"}


def standing(members: int, *, moves_at: int = 10_000, until: int = 420) -> History:
    """One partition's end grows by 150 every 15 s and its commit moves only once; another one is read."""
    history = History().known(0, 0)
    for at in range(0, until + 1, 15):
        lag = 150 + 10 * at
        produced = 155 if at == moves_at else None
        history.round(at, lag if at < moves_at else lag - 5, 0, members=members, produced=produced)
    return history


def joined_late() -> History:
    """The same with members for the last 285 s only."""
    history = History().known(0, 0)
    for at in range(0, 421, 15):
        history.round(at, 150 + 10 * at, 0, members=3 if at >= 135 else 0)
    return history


def never_committed() -> History:
    """Nobody ever committed, and retention takes ten messages every 15 s; the group runs."""
    history = History()
    for at in range(0, 421, 15):
        history.round(at, Offsets(at, 1_000 + 10 * at, None, 1_000 + 10 * at), members=2)
    return history


def expiring() -> History:
    """A commit below a log start that retention moves on with every round."""
    history = History().known(0)
    for at in range(0, 421, 15):
        history.round(at, Offsets(900 + at, 2_000 + at, 100, 2_000 + at), members=2)
    return history


def with_hole() -> History:
    """A commit that stands still, not seen at 15 s."""
    history = History().known(0, 0)
    for at in range(0, 421, 15):
        history.round(at, None if at == 15 else 150 + 10 * at, 0, members=3)
    return history


def lost_and_found() -> History:
    """A commit below the log start, that at 330 s moves to just that start."""
    history = History().known(0)
    for at in range(0, 421, 15):
        history.round(at, Offsets(900, 2_000, 100 if at < 330 else 900, 2_000), members=2)
    return history


def recreated() -> History:
    """A topic that is created again with just the same offsets."""
    history = History().known(offsets(500, 500))
    for at in range(0, 466, 15):
        history.round(at, offsets(900, 500), members=2, new_id=at == 150)
    return history


def beside() -> History:
    """One partition is stuck, the other one is read too slowly."""
    history = History().known(0, 0)
    for at in range(0, 421, 15):
        history.round(at, offsets(109_000, 100_000), offsets(101_000 + at, 100_000 + at), members=2)
    return history


CASES = (
    Case(
        "24",
        "a commit that stands still under members counts until 300 s",
        lambda: standing(3),
        (
            sustained(60, 750, stuck=()),
            sustained(285, 3_000, stuck=()),
            calm(300, active=True, reason=Reason.NO_BREACH, stuck=((1, 0),), stuck_lag=3_150),
            calm(420, active=True, stuck=((1, 0),)),
        ),
        STUCK,
    ),
    Case(
        "24 moves",
        "it counts again, with its whole island, when the commit moves",
        lambda: standing(3, moves_at=345),
        (calm(330, active=True, stuck=((1, 0),)), sustained(345, 3_595, stuck=(), span=345.0)),
        STUCK,
    ),
    Case(
        "24 nobody", "without members nothing is stuck", lambda: standing(0), (sustained(420, 4_350, stuck=()),), STUCK
    ),
    Case(
        "24 late",
        "members for less than 300 s prove nothing",
        joined_late,
        (sustained(420, 4_350, stuck=()),),
        STUCK,
    ),
    Case(
        "24 earliest",
        "without any commit as well, though retention moves its beginning",
        never_committed,
        (calm(420, active=True, stuck=((1, 0),), stuck_lag=4_780),),
        {**STUCK, "offsetResetPolicy": "earliest"},
    ),
    Case(
        "24 lost",
        "a commit that moves to where reading begins has moved",
        lost_and_found,
        (calm(315, active=True, stuck=((1, 0),)), sustained(330, 1_100, stuck=()), sustained(420, 1_100, stuck=())),
        STUCK,
    ),
    Case(
        "24 expiring",
        "what retention takes is no movement",
        expiring,
        (sustained(285, 1_100), calm(300, active=True, stuck=((1, 0),), stuck_lag=1_100)),
        STUCK,
    ),
    Case("24 hole", "one missing sample is none", with_hole, (calm(315, active=True, stuck=((1, 0),)),), STUCK),
    Case(
        "24 long",
        "what moved before has no part in it",
        lambda: standing(3, moves_at=150, until=600),
        (sustained(435, 4_495, stuck=()), calm(450, active=True), calm(600, active=True, stuck=((1, 0),))),
        STUCK,
    ),
    Case(
        "24 recreated",
        "offsets of two topics cannot be compared",
        recreated,
        (sustained(300, 400, stuck=()), calm(450, active=True, stuck=((1, 0),))),
        STUCK,
    ),
    Case(
        "24 beside",
        "the others count",
        beside,
        (sustained(285, 10_000, stuck=()), sustained(300, 1_000, stuck=((1, 0),), stuck_lag=9_000, lagging=1)),
        STUCK,
    ),
    Case(
        "24 total",
        "left out of the total as well",
        lambda: standing(3),
        (sustained(285, 3_000), calm(300, active=True, stuck=((1, 0),))),
        {**STUCK, "persistenceScope": "total"},
    ),
)
