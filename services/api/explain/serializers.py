"""Facts of a point in time and their evaluation -> the body of an explanation. Pure."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from lagscale.clock import to_datetime, to_ms
from lagscale.domain.explain.decision_diff import Evaluation, RecordedDecision, compute_value_changes
from lagscale.domain.lag.time_lag import TimeLag
from lagscale.domain.policy.parsing import list_effective_values
from lagscale.domain.policy.policy import Metric, PersistenceScope
from lagscale.domain.verdict.contract import Verdict
from lagscale.domain.verdict.facts import VerdictFacts, collect_facts
from lagscale.domain.verdict.series import build_series, compute_lag
from lagscale.domain.wording.verdicts import describe_answer, describe_change
from lagscale.store.registry.history import LagStep
from services.api.explain import schemas as out
from services.api.explain.inputs import ExplanationInput
from services.api.schemas import format_time, to_optional_datetime
from services.api.verdicts.answers import describe_coverage, serialize_answer, serialize_island
from services.api.verdicts.schemas import IslandOut

_MAX_ISLANDS = 20
_MAX_MISSING = 100


def compute_facts(point: ExplanationInput) -> VerdictFacts | None:
    """The facts that the verdict's rules evaluate, for details that the verdict itself omits; None if too many samples."""
    if point.rounds is None:
        return None
    facts = build_series(point.rounds, point.policy, point.at_ms)
    return None if facts is None else collect_facts(facts, point.at_ms, point.policy)


def serialize_evaluation(
    point: ExplanationInput, evaluation: Evaluation, facts: VerdictFacts | None
) -> out.EvaluationOut:
    """The evaluation as a body."""
    judgment, policy, topics = evaluation.judgment, point.policy, dict(point.topics)
    applied_changes = compute_value_changes(judgment, policy, evaluation.answer)
    missing = _find_missing(point)
    lookback_ms = policy.answer_lookback_ms
    if judgment.verdict is Verdict.UNKNOWN:
        lookback_ms += policy.hold_ms + policy.hold_window_ms
    return out.EvaluationOut(
        verdict=judgment.verdict.value,
        reason=judgment.reason.value,
        sentence=describe_coverage(judgment, policy, topics, point.find_partial_reason(point.at_ms)),
        value=judgment.value,
        active=judgment.active,
        activity_reason=_find_activity_reason(evaluation, facts),
        newest_round_at=to_optional_datetime(judgment.at_ms),
        age_seconds=None if judgment.at_ms is None else (point.at_ms - judgment.at_ms) / 1000,
        stale_after_seconds=policy.stale_after_ms / 1000,
        total=judgment.measured_total,
        partitions=judgment.partitions,
        lagging=judgment.lagging,
        members=judgment.members,
        missing=missing[:_MAX_MISSING],
        missing_count=len(missing),
        stuck=[
            out.StuckPartitionOut(topic=topics.get(target, "?"), partition=number) for target, number in judgment.stuck
        ],
        islands=_serialize_islands(point, evaluation, facts),
        time_lag=None if judgment.time_lag is None else _serialize_time_lag(judgment.time_lag),
        recovering=judgment.recovering,
        absent_topics=[topics[target] for target in judgment.absent if target in topics],
        steps=[
            out.ValueStepOut(
                rule=change.rule,
                before=change.before,
                after=change.after,
                text=describe_change(change, judgment, policy),
            )
            for change in applied_changes
        ],
        deciding_rule=applied_changes[-1].rule if applied_changes else None,
        answer=serialize_answer(evaluation.answer),
        answer_sentence=describe_answer(judgment, policy, evaluation.answer),
        samples_complete=point.samples_since_ms is None or point.at_ms - lookback_ms >= point.samples_since_ms,
    )


def serialize_registration(point: ExplanationInput) -> out.RegistrationOut:
    """The registration of that time as a body."""
    return out.RegistrationOut(
        version=point.version.version,
        valid_from=point.version.valid_from,
        valid_until=point.until,
        created_at=point.monitor["created_at"],
        deleted_at=point.monitor["deleted_at"],
        topics=list(point.topics.values()),
        policy=list_effective_values(point.policy),
    )


def serialize_decision(record: RecordedDecision) -> out.DecisionOut:
    """A recorded decision as a body."""
    return out.DecisionOut(
        replica=record.replica,
        answered_at=to_datetime(record.decided_ms),
        newest_round_at=to_optional_datetime(record.snapshot_ms),
        verdict=record.verdict,
        value=record.value,
        active=record.active,
        last_known=record.last_known,
        reason=record.reason,
        grpc_code=record.code,
        registration_version=record.version,
        overrides=None if record.overrides is None else dict(record.overrides),
    )


def build_notes(point: ExplanationInput, evaluation_out: out.EvaluationOut | None) -> list[str]:
    """Further facts about that time."""
    notes: list[str] = []
    deleted = point.monitor["deleted_at"]
    if deleted is not None:
        notes.append(f"The monitor was deleted at {format_time(to_ms(deleted))}.")
    elif point.deleted_since is not None:
        deleted_time = format_time(to_ms(point.deleted_since))
        notes.append(f"The monitor was deleted at {deleted_time} and restored after this time: nothing was measured.")
    if point.until is not None:
        notes.append(
            f"The policy was changed later, at {format_time(to_ms(point.until))}; "
            f"this explanation uses version {point.version.version}."
        )
    if evaluation_out is not None and not evaluation_out.samples_complete and point.samples_since_ms is not None:
        notes.append(
            f"Samples before {format_time(point.samples_since_ms)} may have been deleted, and the verdict reads some of them: "
            "the evaluation of that time may have been different."
        )
    if point.rounds is None and evaluation_out is not None:
        notes.append("There are too many samples to list every island; only the longest one is listed.")
    return [*notes, *point.open_transactions]


def build_lag_series(point: ExplanationInput) -> list[out.LagPointOut]:
    """Lag until that time: at each step the newest value of every topic, unless there is a gap."""
    latest: dict[int, LagStep] = {}
    points = []
    for begin, group in groupby(point.lag_series, key=lambda step: step.begin):
        latest |= {step.target_id: step for step in group}
        counted = [step for step in latest.values() if to_ms(begin) - to_ms(step.begin) <= point.policy.max_gap_ms]
        points.append(
            out.LagPointOut(
                at=begin,
                total=sum(step.total for step in counted),
                max_partition_lag=max(step.highest for step in counted),
                max_partition_lag_low=max(step.lowest for step in counted),
            )
        )
    return points


def _find_missing(point: ExplanationInput) -> list[out.MissingSampleOut]:
    """Partitions without a fresh sample and topics without any, the oldest first."""
    found: list[tuple[int, out.MissingSampleOut]] = []
    for target, topic in point.topics.items():
        row = point.rows.get(target)
        if row is None:
            found.append((0, out.MissingSampleOut(topic=topic)))
            continue
        for partition in range(len(row.round.samples)):
            newest = row.newest(partition)
            if partition in row.round.excluded:
                continue
            if newest is None:
                found.append((0, out.MissingSampleOut(topic=topic, partition=partition)))
                continue
            since_ms = row.round.at_ms - newest.age_ms
            age_ms = point.at_ms - since_ms
            if age_ms > point.policy.stale_after_ms:
                lag = compute_lag(newest.sample, point.policy)
                missing = out.MissingSampleOut(
                    topic=topic, partition=partition, since=to_datetime(since_ms), age_seconds=age_ms / 1000, lag=lag
                )
                found.append((since_ms, missing))
    return [missing for _, missing in sorted(found, key=lambda one: one[0])]


def _serialize_islands(point: ExplanationInput, evaluation: Evaluation, facts: VerdictFacts | None) -> list[IslandOut]:
    """The verdict's own island first, then those of the other partitions."""
    first = evaluation.judgment.island
    islands = [] if first is None else [first]
    # Time lag needs the whole stored history, which the facts do not contain.
    is_lag = point.policy.metric is Metric.LAG
    if facts is not None and is_lag and point.policy.persistence_scope is PersistenceScope.PARTITION:
        named = None if first is None else (first.target_id, first.partition)
        islands += [one for one in facts.rank_islands() if (one.target_id, one.partition) != named]
    return [
        serialize_island(one if is_lag else replace(one, lag=one.lag // 1000), point.topics)
        for one in islands[:_MAX_ISLANDS]
    ]


def _find_activity_reason(evaluation: Evaluation, facts: VerdictFacts | None) -> str | None:
    """Why the evaluation is active."""
    if not evaluation.judgment.active:
        return None
    if evaluation.judgment.verdict is Verdict.SUSTAINED:
        return "sustained"
    if facts is None:
        return None
    if facts.activity.backlog:
        return "backlog"
    return "progress" if facts.activity.progress else "scale_down"


def _serialize_time_lag(time_lag: TimeLag) -> out.TimeLagOut:
    upper = None if time_lag.upper_ms is None else time_lag.upper_ms / 1000
    return out.TimeLagOut(seconds=time_lag.estimate_ms / 1000, at_least=time_lag.lower_ms / 1000, at_most=upper)
