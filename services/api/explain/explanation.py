"""Explanation of a point in time: the evaluation of the samples, the recorded answers, and why they differ."""

from __future__ import annotations

import asyncio

from lagscale.clock import to_datetime
from lagscale.domain.explain.decision_diff import (
    DiffReason,
    Evaluation,
    RecordedDecision,
    find_diff_reasons,
    is_same_answer,
)
from lagscale.domain.policy.policy import Metric, PersistenceScope
from lagscale.domain.verdict.contract import VerdictRequest
from lagscale.domain.wording.answers import PointInTime, describe_decisions, describe_diff
from lagscale.store.registry import freezes
from services.api.deps import TenantAccess
from services.api.explain import schemas as out
from services.api.explain.inputs import ExplanationInput, load_explanation_input
from services.api.explain.serializers import (
    build_lag_series,
    build_notes,
    compute_facts,
    serialize_decision,
    serialize_evaluation,
    serialize_registration,
)
from services.api.verdicts.answers import VerdictStore, build_frozen, judge_answer

_SAMPLES_EXPIRED = "The samples of that time are no longer retained."


async def explain_answers(
    tenant: TenantAccess, verdicts: VerdictStore, name: str, at_ms: int | None
) -> out.ExplanationOut:
    """Explain a time, milliseconds since 1970; None is now. The transaction is closed before verdicts are judged.

    Raises:
        NotFound: the tenant has and had no such monitor.
        InvalidInput: the time is in the future, before the monitor, or nothing of it is retained.
        StoreUnavailable: the store does not answer.
    """
    async with tenant.session() as session:
        point = await load_explanation_input(session, name, at_ms)
        tenant_id = session.tenant_id
        in_force = await freezes.read_covering(session, point.monitor, to_datetime(point.at_ms))
        stored_answer = await freezes.read_frozen_answer(session, in_force, point.monitor["id"]) if in_force else None
    request = VerdictRequest(tenant_id, tuple(sorted(point.topics)), point.policy, point.at_ms, point.at_ms)
    partial_reason = point.find_partial_reason(point.at_ms)
    evaluation, evaluation_out = None, None
    if point.has_samples:
        evaluation = await _evaluate(verdicts, request, partial_reason, evidence=True)
        # In a thread, because many samples take a while, and other requests have to be served.
        evaluation_out = serialize_evaluation(point, evaluation, await asyncio.to_thread(compute_facts, point))
    frozen = await build_frozen(verdicts, request, in_force, stored_answer, partial_reason)
    answers = [
        await _compare_decision(verdicts, point, record, evaluation, tenant_id) for record in point.current_decisions
    ]
    freeze_text = "" if frozen is None else f"{frozen.sentence} "
    text = _SAMPLES_EXPIRED if evaluation_out is None else evaluation_out.sentence
    differing = [compared for compared in answers if compared.difference]
    named = f"{differing[0].replica}: " if len(answers) > 1 and differing else ""
    difference = f" {named}{differing[0].difference}" if differing else ""
    decisions_text = describe_decisions(point.current_decisions, point.previous_decision, point.at_ms)
    return out.ExplanationOut(
        monitor=name,
        at=to_datetime(point.at_ms),
        now=to_datetime(point.now_ms),
        sentence=f"{text} {freeze_text}{decisions_text}{difference}",
        registration=serialize_registration(point),
        frozen=frozen,
        evaluation=evaluation_out,
        answers=answers,
        previous_answer=None if point.previous_decision is None else serialize_decision(point.previous_decision),
        decisions=[serialize_decision(record) for record in point.decisions],
        notes=build_notes(point, evaluation_out),
        lag=build_lag_series(point),
        threshold=point.policy.lag_threshold if point.policy.metric is Metric.LAG else None,
        uses_total_lag=point.policy.persistence_scope is PersistenceScope.TOTAL,
    )


async def _evaluate(
    verdicts: VerdictStore, request: VerdictRequest, partial_reason: str, *, evidence: bool
) -> Evaluation:
    """Evaluate the samples until then, by the code that answers KEDA."""
    return Evaluation(*await judge_answer(verdicts, request, partial_reason, evidence=evidence))


async def _compare_decision(
    verdicts: VerdictStore,
    point: ExplanationInput,
    record: RecordedDecision,
    evaluation: Evaluation | None,
    tenant_id: int,
) -> out.ComparedDecisionOut:
    """A recorded decision, and why it differs from the evaluation."""
    facts = serialize_decision(record).model_dump()
    if evaluation is None or is_same_answer(record, evaluation.answer):
        return out.ComparedDecisionOut(**facts, agrees=None if evaluation is None else True)
    version, topics = point.find_replica_version(record), point.find_topics_at(record.decided_ms)
    same_policy = point.read_version_policy(version) == point.policy and topics == point.topics
    evaluation_then = None
    if point.samples_since_ms is None or record.decided_ms >= point.samples_since_ms:
        policy = point.read_version_policy(version, record.overrides)
        request = VerdictRequest(tenant_id, tuple(sorted(topics)), policy, record.decided_ms, record.decided_ms)
        evaluation_then = await _evaluate(
            verdicts, request, point.find_partial_reason(record.decided_ms), evidence=False
        )
    difference_reasons: list[DiffReason] = find_diff_reasons(
        record, evaluation, evaluation_then, same_policy=same_policy
    )
    difference = describe_diff(difference_reasons, record, PointInTime(point.at_ms, point.version.version))
    return out.ComparedDecisionOut(
        **facts, agrees=False, reasons=[reason.value for reason in difference_reasons], difference=difference
    )
