"""The pictures of docs/persistence.md: histories, judged by the reference at every sampling interval, and drawn.

`python -m tests.conventions.pages` writes them into docs/pictures; a house test compares. Nothing in them is drawn by hand:
islands, verdicts, values and bounds are what the code says of the history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.contract import Judgment, Reason, Verdict
from lagscale.domain.verdict.evaluate import judge
from lagscale.domain.verdict.islands import can_bound_lag, compute_lower_bound
from lagscale.domain.verdict.series import SamplePoint, build_series, compute_lag
from tests.contract.histories import BEGIN_MS, SAMPLING, History, ms
from tests.conventions.drawing import Cell, Dot, Drawing, Hole, Shade, svg

#: The policy of every picture; a scene names what differs.
POLICY: Mapping[str, str] = {
    "lagThreshold": "100",
    "sustainSeconds": "60",
    "samplingInterval": "15",
    "maxGapSeconds": "45",
    "staleAfterSeconds": "60",
    "workSeconds": "0",
    "allowIdleConsumers": "true",
}
REASON_LABELS = {
    Reason.STALE: "stale",
    Reason.START_UNKNOWN: "start unknown",
    Reason.NOT_YET: "not yet",
    Reason.ACTIVITY_UNDETERMINED: "activity",
    Reason.NO_DATA: "no data",
}


@dataclass(frozen=True, slots=True)
class Scene:
    """One picture: a history of one partition, and what of the policy differs. Times are seconds."""

    title: str
    under: str
    history: Callable[[], History]
    first: int
    last: int
    policy: Mapping[str, str] = field(default_factory=dict)
    shows_value: bool = False


def spike() -> History:
    return History().known().series(0, 0, 500, 900, 400, 20, 0, 0)


def lasting() -> History:
    return History().known().series(0, 150, 180, 240, 300, 330, 350, 340, 310, 90, 20, 0)


def holed(produced: int) -> History:
    """150, a gap of 105 s in which so many messages were produced, and 150 again."""
    history = History().known().rounds(0, 0, 150)
    history.round(105, 150, produced=produced)
    return history.rounds(120, 195, 150)


def begins_late() -> History:
    return History().rounds(0, 135, 150)


def stabilized() -> History:
    return History().known().series(0, *[200] * 5, *[900] * 2, 600, *[900] * 3, *[0] * 12, members=2)


def recovering() -> History:
    return History().known().series(0, *[1_000 - 50 * number for number in range(20)], members=4)


def stuck() -> History:
    """The end grows by 150 every 15 s, the commit does not move until 195 s."""
    history = History().known()
    for at in range(0, 241, SAMPLING):
        history.round(at, 150 + 10 * min(at, 195) - (20 if at >= 195 else 0), members=3, produced=150)
    return history


SCENES: Mapping[str, Scene] = {
    "spike": Scene(
        "A spike",
        "The island ends after 30 s, before sustainSeconds (60): calm at every sample.",
        spike,
        -30,
        90,
    ),
    "lasting": Scene(
        "Sustained lag",
        "Known start at 0 s: sustained from the sample that proves 60 s, calm at the first that is not a breach.",
        lasting,
        -30,
        150,
    ),
    "gap-bridged": Scene(
        "A bridged gap",
        "105 s without a sample, 20 messages produced: the lag was never below 150 - 20 = 130, so it is one island.",
        lambda: holed(20),
        -30,
        195,
    ),
    "gap-not-bridged": Scene(
        "A gap that is not bridged",
        "The same gap, 200 messages produced: the lag may have been 0, so a new island with an unknown start begins.",
        lambda: holed(200),
        -30,
        195,
    ),
    "unknown-start": Scene(
        "An island with an unknown start",
        "No earlier samples: unknown until the samples prove 60 s.",
        begins_late,
        0,
        135,
    ),
    "stabilized": Scene(
        "A stabilized value",
        "scaleUpStabilization 60, scaleDownStabilization 120. The blue line is the value that KEDA gets.",
        stabilized,
        -15,
        330,
        {"scaleUpStabilization": "60", "scaleDownStabilization": "120"},
        shows_value=True,
    ),
    "recovering": Scene(
        "A recovering backlog",
        "drainSeconds 120, 4 members in 4 replicas, targetLag 100: while recovering, the value is at most 4 x 100.",
        recovering,
        -15,
        285,
        {"drainSeconds": "120"},
        shows_value=True,
    ),
    "stuck": Scene(
        "A stuck partition",
        "stuckAfterSeconds 120, 3 members. Excluded from 120 s on, still active; the commit moves at 195 s.",
        stuck,
        -30,
        240,
        {"stuckAfterSeconds": "120"},
        shows_value=True,
    ),
}


def judged(scene: Scene) -> list[tuple[int, Judgment]]:
    """(seconds, judgment) every sampling interval, each with the samples until then."""
    policy = parse_policy({**POLICY, **scene.policy})
    targets = scene.history().targets()
    return [
        (at, judge(targets, policy, now_ms=ms(at), upto_ms=ms(at)))
        for at in range(scene.first, scene.last + 1, SAMPLING)
    ]


def picture(name: str) -> str:
    """The SVG of a scene."""
    scene = SCENES[name]
    policy = parse_policy({**POLICY, **scene.policy})
    answers = judged(scene)
    points = [p for p in _points(scene, policy) if scene.first <= _seconds(p.at_ms) <= scene.last]
    return svg(
        Drawing(
            title=scene.title,
            under=scene.under,
            threshold=policy.lag_threshold,
            step=SAMPLING,
            dots=[Dot(_seconds(point.at_ms), compute_lag(point.sample, policy)) for point in points],
            shades=_shades([judgment for _, judgment in answers]),
            holes=_holes(points, policy),
            cells=[_cell(at, judgment) for at, judgment in answers],
            shows_value=scene.shows_value,
        )
    )


def _points(scene: Scene, policy: Policy) -> tuple[SamplePoint, ...]:
    seen = build_series(scene.history().targets(), policy, None)
    assert seen is not None
    return seen.series[0].points


def _shades(answers: list[Judgment]) -> list[Shade]:
    """The islands that decided at some instant, each with its final length and its first start.

    Samples before the lookback do not count, so the same island may have a later start afterwards.
    """
    shades: list[Shade] = []
    for island in (judgment.island for judgment in answers):
        if island is None:
            continue
        since, until = _seconds(island.since_ms), _seconds(island.since_ms + island.span_ms)
        if shades and since <= shades[-1].until:
            shades[-1] = replace(shades[-1], until=max(until, shades[-1].until))
        else:
            shades.append(Shade(since, until, island.start_known))
    return shades


def _holes(points: list[SamplePoint], policy: Policy) -> list[Hole]:
    found = []
    for older, newer in pairwise(points):
        if newer.at_ms - older.at_ms > policy.max_gap_ms:
            least = compute_lower_bound(older, newer, compute_lag(newer.sample, policy))
            bridged = can_bound_lag(older, newer) and least > policy.lag_threshold
            found.append(Hole(_seconds(older.at_ms), _seconds(newer.at_ms), least, bridged))
    return found


def _cell(at: float, judgment: Judgment) -> Cell:
    because = "" if judgment.verdict is Verdict.SUSTAINED else REASON_LABELS.get(judgment.reason, "")
    return Cell(at, judgment.verdict.value, because, judgment.value, judgment.active)


def _seconds(at_ms: int) -> float:
    return (at_ms - BEGIN_MS) / 1000
