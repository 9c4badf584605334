"""The samples of a span and the judgements of its moments -> the comparison with KEDA's trigger. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from lagscale.domain.explain.keda_kafka import Commits, KafkaAnswer, KafkaTrigger, kafka_answer
from lagscale.domain.explain.replicas import Answer, Course, Workload, course
from lagscale.domain.lag.rounds import TargetRound
from lagscale.domain.policy.policy import Metric, Policy
from lagscale.domain.verdict.contract import Judgement, Reason, Told, Verdict
from lagscale.store.samples.columns import instant
from services.api.compare import schemas as out

_MOST_DIFFERENCES = 100
_WHY: Mapping[Reason, str] = {
    Reason.NOT_YET: "lag was there, and had not lasted for sustainSeconds",
    Reason.NO_BREACH: "lag was there, and at or below lagThreshold",
    Reason.LASTED: "lag had lasted",
}


@dataclass(frozen=True, slots=True)
class Material:
    """What a comparison is made of.

    Attributes:
        moments: the ends of the steps, the oldest first.
        rounds: target id -> of each step the last round, the oldest first.
        judged, answers: of each moment.
    """

    name: str
    policy: Policy
    trigger: KafkaTrigger
    least: int
    most: int
    begin_ms: int
    step_ms: int
    moments: Sequence[int]
    rounds: Mapping[int, Sequence[TargetRound]]
    judged: Sequence[Judgement]
    answers: Sequence[Told | None]
    notes: Sequence[str]


def comparison(material: Material) -> out.ComparisonOut:
    """The whole answer."""
    said = keda_answers(material)
    keda = [
        Answer(at, None if one is None else float(one.value), None if one is None else one.active)
        for at, one in zip(material.moments, said, strict=True)
    ]
    ours = [
        Answer(at, None if one is None else one.value, None if one is None else one.active)
        for at, one in zip(material.moments, material.answers, strict=True)
    ]
    theirs = course(keda, Workload(material.trigger.lag_threshold, material.least, material.most))
    mine = course(ours, Workload(material.policy.target_lag, material.least, material.most))
    moments = [
        out.MomentOut(
            at=instant(at),
            keda=out.SideOut(value=keda[n].value, active=keda[n].active, replicas=theirs.replicas[n]),
            lagscale=out.SideOut(value=ours[n].value, active=ours[n].active, replicas=mine.replicas[n]),
            verdict=material.judged[n].verdict.value,
            reason=material.judged[n].reason.value,
            held=_held(material.answers[n]),
            differs=theirs.replicas[n] != mine.replicas[n],
        )
        for n, at in enumerate(material.moments)
    ]
    of_keda, of_ours = _summary(keda, theirs), _summary(ours, mine)
    return out.ComparisonOut(
        monitor=material.name,
        begin=instant(material.begin_ms),
        end=instant(material.moments[-1]),
        step_seconds=material.step_ms / 1000,
        min_replicas=material.least,
        max_replicas=material.most,
        target_lag=material.policy.target_lag,
        trigger=_trigger(material.trigger),
        sentence=_sentence(of_keda, of_ours),
        keda=of_keda,
        lagscale=of_ours,
        differences=_differences(moments, material)[:_MOST_DIFFERENCES],
        notes=[*material.notes, *_notes(said, material)],
        moments=moments,
    )


def keda_answers(material: Material) -> list[KafkaAnswer | None]:
    """What KEDA's trigger answers at each moment; None where there is no fresh round to tell it from."""
    places = dict.fromkeys(material.rounds, -1)
    commits: Commits = {}
    answers: list[KafkaAnswer | None] = []
    for at in material.moments:
        present: dict[int, TargetRound] = {}
        for target, rounds in material.rounds.items():
            while places[target] + 1 < len(rounds) and rounds[places[target] + 1].at_ms <= at:
                places[target] += 1
            if places[target] >= 0 and at - rounds[places[target]].at_ms <= material.policy.stale_after_ms:
                present[target] = rounds[places[target]]
        if present and len(present) == len(material.rounds):
            answer = kafka_answer(present, material.trigger, commits)
            commits = answer.commits
            answers.append(answer)
        else:
            # Its memory does not outlive an error.
            commits = {}
            answers.append(None)
    return answers


def _held(answer: Told | None) -> bool:
    return answer is not None and answer.held_since_ms is not None


def _summary(answers: Sequence[Answer], found: Course) -> out.SummaryOut:
    return out.SummaryOut(
        scale_events=found.events,
        greatest_replicas=max(found.replicas),
        average_replicas=round(sum(found.replicas) / len(found.replicas), 2),
        errors=sum(answer.value is None for answer in answers),
    )


def _trigger(trigger: KafkaTrigger) -> out.KedaTriggerOut:
    return out.KedaTriggerOut(
        lag_threshold=trigger.lag_threshold,
        activation_lag_threshold=trigger.activation_lag_threshold,
        offset_reset_policy=trigger.offset_reset_policy.value,
        scale_to_zero_on_invalid_offset=trigger.scale_to_zero_on_invalid_offset,
        allow_idle_consumers=trigger.allow_idle_consumers,
        limit_to_partitions_with_lag=trigger.limit_to_lagging,
        ensure_even_distribution_of_partitions=trigger.even_split,
        exclude_persistent_lag=trigger.exclude_persistent_lag,
    )


def _differences(moments: Sequence[out.MomentOut], material: Material) -> list[out.DifferenceOut]:
    """Stretches of moments that differ in the same direction."""
    found = []
    numbered = list(enumerate(moments))
    for more, group in groupby(numbered, key=lambda one: _sign(one[1].keda.replicas - one[1].lagscale.replicas)):
        stretch = list(group)
        if more == 0:
            continue
        first, last = stretch[0], stretch[-1]
        found.append(
            out.DifferenceOut(
                begin=first[1].at,
                end=last[1].at,
                keda_greatest=max(one.keda.replicas for _, one in stretch),
                lagscale_greatest=max(one.lagscale.replicas for _, one in stretch),
                sentence=_why(more, first[1], material.judged[first[0]]),
            )
        )
    return found


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _why(more: int, first: out.MomentOut, judgement: Judgement) -> str:
    """Why the two differ, by the first moment of a stretch."""
    side = "KEDA has more replicas" if more > 0 else "Lagscale has more replicas"
    if first.held:
        return f"{side}: lag was not known, and Lagscale held the last known answer."
    if first.lagscale.value is None:
        return f"{side}: Lagscale gave an error ({judgement.reason.value}), so its replicas stayed."
    if first.keda.value is None:
        return f"{side}: KEDA's trigger would have given an error, so its replicas stayed."
    if more > 0:
        return f"{side}: {_WHY.get(judgement.reason, judgement.reason.value)}."
    if judgement.verdict is Verdict.CALM:
        return f"{side}: the group was at work, which counts as active though nothing waits."
    return f"{side}: the two values are {first.keda.value:,.0f} and {first.lagscale.value:,.0f}."


def _sentence(keda: out.SummaryOut, ours: out.SummaryOut) -> str:
    return (
        f"KEDA's kafka trigger would have scaled {_times(keda.scale_events)} and Lagscale {_times(ours.scale_events)}; "
        f"at most {keda.greatest_replicas} and {ours.greatest_replicas} replicas, "
        f"{keda.average_replicas:g} and {ours.average_replicas:g} on average."
    )


def _times(number: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number} times")


def _notes(said: Sequence[KafkaAnswer | None], material: Material) -> list[str]:
    notes = []
    beyond = sum(one is not None and one.beyond > 0 for one in said)
    if beyond:
        notes.append(
            f"At {beyond} moments a commit lay beyond the end: KEDA takes that as negative lag, which hides other "
            "partitions' lag; how much is not kept, so its value was smaller than shown."
        )
    if material.trigger.exclude_persistent_lag:
        notes.append(
            "excludePersistentLag compares with the call before; the HPA and the poll both call, so KEDA's real "
            "answers vary more than one call per step shows."
        )
    if material.policy.metric is Metric.TIME_LAG:
        notes.append("The monitor judges seconds, KEDA's trigger messages; only the replicas can be compared.")
    if material.policy.isolation_level.value == "read_committed":
        notes.append("The samples end at the last stable offset; KEDA counts to the high watermark.")
    return notes
