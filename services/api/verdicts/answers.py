"""The answer to KEDA of a monitor, measured, last known or frozen; verdict, explanation and comparison share it.

Verdicts are judged in the scaler's role, which sees every tenant's samples, because it judges many tenants in one
statement. So only targets that were just read in the caller's tenant context are passed, and the statement names their
tenant again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from lagscale.clock import to_datetime
from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.contract import Answer, Island, Judgment, Verdict, VerdictRequest
from lagscale.domain.verdict.freezes import Freeze
from lagscale.domain.verdict.hold import apply_partial_coverage, build_frozen_request, choose_answer
from lagscale.domain.wording.answers import describe_freezes
from lagscale.domain.wording.verdicts import describe_verdict
from services.api.schemas import to_optional_datetime
from services.api.verdicts.schemas import AnswerOut, FrozenOut, IslandOut

#: As the registry reads it: None while no answer is stored, (None,) where nothing was known that could be held.
StoredAnswer = tuple[Answer | None] | None


class VerdictStore(Protocol):
    """The part of the store of verdicts that the API uses."""

    async def judge(self, requests: Sequence[VerdictRequest], *, evidence: bool = False) -> list[Judgment]: ...

    async def find_last_known(self, request: VerdictRequest, judgment: Judgment) -> Answer | None: ...


async def judge_answer(
    verdicts: VerdictStore, request: VerdictRequest, partial_reason: str, *, evidence: bool
) -> tuple[Judgment, Answer | None]:
    """The judgment of one monitor, and the answer that follows from it.

    Args:
        verdicts: the store.
        request: the monitor; its targets were read in the tenant's context.
        partial_reason: why only a part of the monitor's topics is measured; empty if all are.
        evidence: whether the judgment has to contain its island.
    """
    (judgment,) = await verdicts.judge([request], evidence=evidence)
    if partial_reason:
        judgment = apply_partial_coverage(judgment, request.policy)
    is_unknown = judgment.verdict is Verdict.UNKNOWN and not partial_reason
    last_known = await verdicts.find_last_known(request, judgment) if is_unknown else None
    return judgment, choose_answer(judgment, request.policy, last_known)


async def build_frozen(
    verdicts: VerdictStore,
    request: VerdictRequest,
    in_force: Sequence[Freeze],
    stored_answer: StoredAnswer,
    partial_reason: str,
) -> FrozenOut | None:
    """The freezes that cover a monitor, with its answer under them; None without a freeze.

    Args:
        verdicts: the store.
        request: the monitor, with all its topics; its targets were read in the tenant's context.
        in_force: the freezes, the oldest first.
        stored_answer: the one that the scaler stored under them; computed where KEDA has not asked for it yet.
        partial_reason: why only a part of the monitor's topics is measured, so that no answer is known; empty if all are.
    """
    if not in_force:
        return None
    if partial_reason:
        answer = None
    elif stored_answer is not None:
        answer = stored_answer[0]
    else:
        frozen_request = build_frozen_request(request, in_force[0].since_ms)
        (judgment,) = await verdicts.judge([frozen_request])
        answer = await verdicts.find_last_known(frozen_request, judgment)
    return FrozenOut(
        sentence=describe_freezes(in_force, has_answer=answer is not None),
        since=to_datetime(in_force[0].since_ms),
        until=to_datetime(max(one.until_ms for one in in_force)),
        reasons=[one.reason for one in in_force],
        answer=serialize_answer(answer),
    )


def describe_coverage(judgment: Judgment, policy: Policy, topics: Mapping[int, str], partial_reason: str) -> str:
    """The verdict in a sentence; of a part of the topics only what is sustained is proven."""
    if partial_reason and judgment.value is None:
        return partial_reason
    return f"{describe_verdict(judgment, policy, topics)} {partial_reason}".rstrip()


def serialize_answer(answer: Answer | None) -> AnswerOut | None:
    """An answer as a body."""
    if answer is None:
        return None
    return AnswerOut(
        value=answer.value,
        active=answer.active,
        last_known=answer.last_known_ms is not None,
        known_at=to_optional_datetime(answer.last_known_ms),
    )


def serialize_island(island: Island, topics: Mapping[int, str]) -> IslandOut:
    """An island as a body, with the name of its topic."""
    return IslandOut(
        topic=None if island.target_id is None else topics.get(island.target_id),
        partition=island.partition,
        lag=island.lag,
        since=to_datetime(island.since_ms),
        duration_seconds=island.span_ms / 1000,
        start_known=island.start_known,
    )
