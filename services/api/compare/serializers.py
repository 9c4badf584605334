"""Samples of a time range and judgments of its points -> the body of a comparison with KEDA's trigger. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby

from lagscale.clock import to_datetime
from lagscale.domain.explain.keda_kafka import Commits, KafkaTrigger, KafkaTriggerAnswer, simulate_kafka_trigger
from lagscale.domain.explain.replicas import ReplicaSeries, TimedAnswer, Workload, simulate_replicas
from lagscale.domain.lag.rounds import TargetRound
from lagscale.domain.policy.policy import Metric, Policy
from lagscale.domain.verdict.contract import Answer, Judgment, Reason, Verdict
from services.api.compare import schemas as out

_MAX_DIFFERENCES = 100
_TEXT_BY_REASON: Mapping[Reason, str] = {
    Reason.NOT_YET: "there was lag, but not for sustainSeconds",
    Reason.NO_BREACH: "there was lag, at or below lagThreshold",
    Reason.LASTED: "lag was sustained",
}


@dataclass(frozen=True, slots=True)
class ComparisonInput:
    """Input of a comparison.

    Attributes:
        points: ends of the steps, the oldest first.
        rounds: target id -> last round of each step, the oldest first.
        judged, answers: of each point.
    """

    name: str
    policy: Policy
    trigger: KafkaTrigger
    min_replicas: int
    max_replicas: int
    begin_ms: int
    step_ms: int
    points: Sequence[int]
    rounds: Mapping[int, Sequence[TargetRound]]
    judged: Sequence[Judgment]
    answers: Sequence[Answer | None]
    notes: Sequence[str]


def build_comparison(given: ComparisonInput) -> out.ComparisonOut:
    """The comparison as a body."""
    trigger_answers = compute_keda_answers(given)
    keda = [
        TimedAnswer(at, None if one is None else float(one.value), None if one is None else one.active)
        for at, one in zip(given.points, trigger_answers, strict=True)
    ]
    lagscale_answers = [
        TimedAnswer(at, None if one is None else one.value, None if one is None else one.active)
        for at, one in zip(given.points, given.answers, strict=True)
    ]
    keda_replicas = simulate_replicas(
        keda,
        Workload(given.trigger.lag_threshold, given.min_replicas, given.max_replicas),
    )
    lagscale_replicas = simulate_replicas(
        lagscale_answers,
        Workload(given.policy.target_lag, given.min_replicas, given.max_replicas),
    )
    points = _serialize_points(given, (keda, keda_replicas), (lagscale_answers, lagscale_replicas))
    keda_summary, lagscale_summary = _summarize(keda, keda_replicas), _summarize(lagscale_answers, lagscale_replicas)
    return out.ComparisonOut(
        monitor=given.name,
        begin=to_datetime(given.begin_ms),
        end=to_datetime(given.points[-1]),
        step_seconds=given.step_ms / 1000,
        min_replicas=given.min_replicas,
        max_replicas=given.max_replicas,
        target_lag=given.policy.target_lag,
        trigger=out.KedaTriggerOut(**asdict(given.trigger)),
        sentence=_build_sentence(keda_summary, lagscale_summary),
        keda=keda_summary,
        lagscale=lagscale_summary,
        differences=_find_differences(points, given)[:_MAX_DIFFERENCES],
        notes=[*given.notes, *_build_notes(trigger_answers, given)],
        points=points,
    )


def _serialize_points(
    given: ComparisonInput,
    keda_side: tuple[Sequence[TimedAnswer], ReplicaSeries],
    lagscale_side: tuple[Sequence[TimedAnswer], ReplicaSeries],
) -> list[out.ComparisonPointOut]:
    (keda, keda_replicas), (lagscale_answers, lagscale_replicas) = keda_side, lagscale_side
    return [
        out.ComparisonPointOut(
            at=to_datetime(at),
            keda=out.ComparisonSideOut(value=keda[n].value, active=keda[n].active, replicas=keda_replicas.replicas[n]),
            lagscale=out.ComparisonSideOut(
                value=lagscale_answers[n].value,
                active=lagscale_answers[n].active,
                replicas=lagscale_replicas.replicas[n],
            ),
            verdict=given.judged[n].verdict.value,
            reason=given.judged[n].reason.value,
            last_known=_is_last_known(given.answers[n]),
            differs=keda_replicas.replicas[n] != lagscale_replicas.replicas[n],
        )
        for n, at in enumerate(given.points)
    ]


def compute_keda_answers(given: ComparisonInput) -> list[KafkaTriggerAnswer | None]:
    """The answer of KEDA's trigger at each point; None without a fresh round of every target."""
    last_index = dict.fromkeys(given.rounds, -1)
    commits: Commits = {}
    answers: list[KafkaTriggerAnswer | None] = []
    for at in given.points:
        fresh_rounds: dict[int, TargetRound] = {}
        for target, rounds in given.rounds.items():
            while last_index[target] + 1 < len(rounds) and rounds[last_index[target] + 1].at_ms <= at:
                last_index[target] += 1
            if last_index[target] >= 0 and at - rounds[last_index[target]].at_ms <= given.policy.stale_after_ms:
                fresh_rounds[target] = rounds[last_index[target]]
        if fresh_rounds and len(fresh_rounds) == len(given.rounds):
            answer = simulate_kafka_trigger(fresh_rounds, given.trigger, commits)
            commits = answer.commits
            answers.append(answer)
        else:
            # The trigger forgets its commits after an error.
            commits = {}
            answers.append(None)
    return answers


def _is_last_known(answer: Answer | None) -> bool:
    return answer is not None and answer.last_known_ms is not None


def _summarize(answers: Sequence[TimedAnswer], series: ReplicaSeries) -> out.ComparisonSummaryOut:
    return out.ComparisonSummaryOut(
        scale_events=series.events,
        peak_replicas=max(series.replicas),
        average_replicas=round(sum(series.replicas) / len(series.replicas), 2),
        errors=sum(answer.value is None for answer in answers),
    )


def _find_differences(
    points: Sequence[out.ComparisonPointOut], given: ComparisonInput
) -> list[out.ComparisonDifferenceOut]:
    """Runs of points that differ in the same direction."""
    differences = []
    numbered = list(enumerate(points))
    for sign, group in groupby(numbered, key=lambda one: _sign(one[1].keda.replicas - one[1].lagscale.replicas)):
        run = list(group)
        if sign == 0:
            continue
        first, last = run[0], run[-1]
        differences.append(
            out.ComparisonDifferenceOut(
                begin=first[1].at,
                end=last[1].at,
                keda_peak_replicas=max(one.keda.replicas for _, one in run),
                lagscale_peak_replicas=max(one.lagscale.replicas for _, one in run),
                sentence=_explain_difference(sign, first[1], given.judged[first[0]]),
            )
        )
    return differences


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _explain_difference(sign: int, first: out.ComparisonPointOut, judgment: Judgment) -> str:
    """Why the two differ, by the first point of a run."""
    side = "KEDA has more replicas" if sign > 0 else "Lagscale has more replicas"
    if first.last_known:
        return f"{side}: lag was unknown, and Lagscale returned the last known answer."
    if first.lagscale.value is None:
        return f"{side}: Lagscale returned an error ({judgment.reason.value}), so its replicas stayed."
    if first.keda.value is None:
        return f"{side}: KEDA's trigger would have returned an error, so its replicas stayed."
    if sign > 0:
        return f"{side}: {_TEXT_BY_REASON.get(judgment.reason, judgment.reason.value)}."
    if judgment.verdict is Verdict.CALM:
        return f"{side}: the group made progress, which counts as active without lag."
    return f"{side}: the two values are {first.keda.value:,.0f} and {first.lagscale.value:,.0f}."


def _build_sentence(keda: out.ComparisonSummaryOut, lagscale_answers: out.ComparisonSummaryOut) -> str:
    return (
        f"KEDA's kafka trigger would have scaled {_format_times(keda.scale_events)} and Lagscale {_format_times(lagscale_answers.scale_events)}; "
        f"at most {keda.peak_replicas} and {lagscale_answers.peak_replicas} replicas, "
        f"{keda.average_replicas:g} and {lagscale_answers.average_replicas:g} on average."
    )


def _format_times(number: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number} times")


def _build_notes(trigger_answers: Sequence[KafkaTriggerAnswer | None], given: ComparisonInput) -> list[str]:
    notes = []
    beyond_end = sum(one is not None and one.beyond_end > 0 for one in trigger_answers)
    if beyond_end:
        notes.append(
            f"At {beyond_end} points a committed offset was beyond the end offset: KEDA counts that as negative lag, which hides "
            "lag of other partitions; the amount is not stored, so its value was smaller than shown."
        )
    if given.trigger.exclude_persistent_lag:
        notes.append(
            "excludePersistentLag compares with the previous call; the HPA and the poll both call, so KEDA's real "
            "answers vary more than one call per step shows."
        )
    if given.policy.metric is Metric.TIME_LAG:
        notes.append("The monitor measures seconds, KEDA's trigger messages; only the replicas can be compared.")
    if given.policy.isolation_level.value == "read_committed":
        notes.append("The samples end at the last stable offset; KEDA counts to the high watermark.")
    return notes
