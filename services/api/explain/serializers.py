"""A moment and what the samples say of it -> bodies of answers. Pure; `explanations` calls it."""

from __future__ import annotations

from datetime import datetime
from itertools import groupby

from lagscale.domain.explain.decision_diff import Record, Said, changes
from lagscale.domain.lag.time_lag import TimeLag
from lagscale.domain.policy.policy import Metric, PersistenceScope
from lagscale.domain.policy.values import resolved
from lagscale.domain.verdict.contract import Island, Told, Verdict
from lagscale.domain.verdict.facts import Picture, picture_of
from lagscale.domain.verdict.series import lag_of, measured
from lagscale.domain.wording.verdicts import answer_sentence, change_sentence, sentence
from lagscale.store.registry.history import Step, milliseconds
from lagscale.store.samples.columns import instant
from services.api.explain import schemas as out
from services.api.explain.points_in_time import Moment, told_time
from services.api.verdicts.schemas import IslandOut, ToldOut

_ISLANDS = 20
_MISSING = 100


def picture(moment: Moment) -> Picture | None:
    """What the rules of the verdict looked at, for what the verdict itself does not tell; None where it is too much."""
    if moment.rounds is None:
        return None
    seen = measured(moment.rounds, moment.policy, moment.at_ms)
    return None if seen is None else picture_of(seen, moment.at_ms, moment.policy)


def said_of(moment: Moment, said: Said, seen: Picture | None) -> out.SaidOut:
    """What the samples say."""
    judgement, policy, topics = said.judgement, moment.policy, dict(moment.topics)
    made = changes(judgement, policy, said.told)
    missing = _missing(moment)
    reach_ms = policy.lookback_ms
    if judgement.verdict is Verdict.UNKNOWN:
        reach_ms += policy.hold_ms + policy.hold_window_ms
    return out.SaidOut(
        verdict=judgement.verdict.value,
        reason=judgement.reason.value,
        sentence=_sentence(said, moment),
        value=judgement.value,
        active=judgement.active,
        because=_because(said, seen),
        newest_at=_moment(judgement.at_ms),
        age_seconds=None if judgement.at_ms is None else (moment.at_ms - judgement.at_ms) / 1000,
        stale_after_seconds=policy.stale_after_ms / 1000,
        total=judgement.known_total,
        partitions=judgement.partitions,
        lagging=judgement.lagging,
        members=judgement.members,
        missing=missing[:_MISSING],
        missing_count=len(missing),
        stuck=[out.StuckOut(topic=topics.get(target, "?"), partition=number) for target, number in judgement.stuck],
        islands=_islands(moment, said, seen),
        time_lag=None if judgement.time_lag is None else _time_lag(judgement.time_lag),
        draining=judgement.draining,
        absent_topics=[topics[target] for target in judgement.absent if target in topics],
        steps=[
            out.StepOut(
                rule=change.rule,
                before=change.before,
                after=change.after,
                text=change_sentence(change, judgement, policy),
            )
            for change in made
        ],
        limit=made[-1].rule if made else None,
        answer=None if said.told is None else _told(said.told),
        answer_sentence=answer_sentence(judgement, policy, said.told),
        whole=moment.kept_ms is None or moment.at_ms - reach_ms >= moment.kept_ms,
    )


def _sentence(said: Said, moment: Moment) -> str:
    """Of a part of the topics only what lasted is worth telling."""
    partial = moment.partial_at(moment.at_ms)
    text = sentence(said.judgement, moment.policy, dict(moment.topics))
    if not partial:
        return text
    return partial if said.judgement.value is None else f"{text} {partial}"


def registration_of(moment: Moment) -> out.RegistrationThen:
    """The monitor as it was registered then."""
    return out.RegistrationThen(
        version=moment.version.version,
        valid_from=moment.version.valid_from,
        valid_until=moment.until,
        created_at=moment.monitor["created_at"],
        deleted_at=moment.monitor["deleted_at"],
        topics=list(moment.topics.values()),
        policy=resolved(moment.policy),
    )


def decision_of(record: Record) -> out.DecisionOut:
    """What a replica told."""
    return out.DecisionOut(
        replica=record.replica,
        told_at=instant(record.told_ms),
        snapshot_at=_moment(record.snapshot_ms),
        verdict=record.verdict,
        value=record.value,
        active=record.active,
        held=record.held,
        reason=record.reason,
        code=record.code,
        version=record.version,
        overrides=None if record.overrides is None else dict(record.overrides),
    )


def notes_of(moment: Moment, saying: out.SaidOut | None) -> list[str]:
    """What else is to be known of the moment."""
    notes: list[str] = []
    deleted = moment.monitor["deleted_at"]
    if deleted is not None:
        notes.append(f"The monitor was deleted at {told_time(milliseconds(deleted))}.")
    elif moment.gone_since is not None:
        gone = told_time(milliseconds(moment.gone_since))
        notes.append(f"The monitor was deleted at {gone} and restored after this moment: nothing was measured.")
    if moment.until is not None:
        notes.append(
            f"The policy was edited later, at {told_time(milliseconds(moment.until))}; "
            f"this explains the moment by version {moment.version.version}."
        )
    if saying is not None and not saying.whole and moment.kept_ms is not None:
        notes.append(
            f"Samples before {told_time(moment.kept_ms)} may have been dropped, and the verdict looks at some of them: "
            "what the samples said then may have been more."
        )
    if moment.rounds is None and saying is not None:
        notes.append("There are too many samples to list every island; the one that matters most is shown.")
    return notes


def lag_of_time(moment: Moment) -> list[out.LagPoint]:
    """How lag went until the moment: at each step the newest of every topic, unless a gap lies between."""
    latest: dict[int, Step] = {}
    points = []
    for begin, group in groupby(moment.course, key=lambda step: step.begin):
        latest |= {step.target_id: step for step in group}
        counted = [
            step
            for step in latest.values()
            if milliseconds(begin) - milliseconds(step.begin) <= moment.policy.max_gap_ms
        ]
        points.append(
            out.LagPoint(
                at=begin,
                total=sum(step.total for step in counted),
                greatest=max(step.greatest for step in counted),
                least=max(step.least for step in counted),
            )
        )
    return points


def _missing(moment: Moment) -> list[out.MissingOut]:
    """Partitions without a fresh sample and topics without any, the oldest first."""
    found: list[tuple[int, out.MissingOut]] = []
    for target, topic in moment.topics.items():
        row = moment.rows.get(target)
        if row is None:
            found.append((0, out.MissingOut(topic=topic)))
            continue
        for partition in range(len(row.round.samples)):
            newest = row.newest(partition)
            if partition in row.round.outside:
                continue
            if newest is None:
                found.append((0, out.MissingOut(topic=topic, partition=partition)))
                continue
            since_ms = row.round.at_ms - newest.age_ms
            age_ms = moment.at_ms - since_ms
            if age_ms > moment.policy.stale_after_ms:
                lag = lag_of(newest.sample, moment.policy)
                missing = out.MissingOut(
                    topic=topic, partition=partition, since=instant(since_ms), age_seconds=age_ms / 1000, lag=lag
                )
                found.append((since_ms, missing))
    return [missing for _, missing in sorted(found, key=lambda one: one[0])]


def _islands(moment: Moment, said: Said, seen: Picture | None) -> list[IslandOut]:
    """The verdict's own island first, then those of the other partitions."""
    first = said.judgement.island
    islands = [] if first is None else [first]
    # Time lag is read off the whole stored history, which the picture has not.
    whole = moment.policy.metric is Metric.LAG
    if seen is not None and whole and moment.policy.persistence_scope is PersistenceScope.PARTITION:
        others = [
            Island(
                trail.series.target_id,
                trail.series.partition,
                trail.run.lag,
                trail.run.since_ms,
                trail.run.span_ms,
                trail.run.bounded,
            )
            for trail in seen.trails
        ]
        others.sort(key=lambda one: (-one.span_ms, -one.lag, one.target_id or 0, one.partition or 0))
        named = None if first is None else (first.target_id, first.partition)
        islands += [one for one in others if (one.target_id, one.partition) != named]
    return [
        IslandOut(
            topic=None if one.target_id is None else moment.topics.get(one.target_id),
            partition=one.partition,
            lag=one.lag if whole else one.lag // 1000,
            since=instant(one.since_ms),
            span_seconds=one.span_ms / 1000,
            bounded=one.bounded,
        )
        for one in islands[:_ISLANDS]
    ]


def _because(said: Said, seen: Picture | None) -> str | None:
    """Why the samples say that it is active."""
    if not said.judgement.active:
        return None
    if said.judgement.verdict is Verdict.SUSTAINED:
        return "sustained"
    if seen is None:
        return None
    if seen.activity.backlog:
        return "backlog"
    return "work" if seen.activity.work else "scale_down"


def _time_lag(wait: TimeLag) -> out.TimeLagOut:
    upper = None if wait.upper_ms is None else wait.upper_ms / 1000
    return out.TimeLagOut(seconds=wait.estimate_ms / 1000, at_least=wait.lower_ms / 1000, at_most=upper)


def _told(answer: Told) -> ToldOut:
    since = answer.held_since_ms
    return ToldOut(value=answer.value, active=answer.active, held=since is not None, held_since=_moment(since))


def _moment(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else instant(at_ms)
