"""/v1/tenants/{tenant}/monitors/{monitor}: the verdict and the samples of a monitor."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from lagscale.clock import to_datetime
from lagscale.domain.lag.rounds import MEMBERS_MAX_AGE_MS, Note
from lagscale.domain.lag.samples import Flag
from lagscale.domain.policy.parsing import list_effective_values
from lagscale.domain.verdict.contract import VerdictRequest
from lagscale.domain.wording.verdicts import describe_answer
from lagscale.errors import InvalidInput
from lagscale.store.registry import freezes, history
from lagscale.store.registry.history import SampleRange
from lagscale.store.registry.paging import INVALID_CURSOR, decode_cursor, encode_cursor
from lagscale.store.registry.session import Row
from services.api.deps import PageQuery, Viewer, check_name, part
from services.api.monitors.drafts import read_measured
from services.api.schemas import Listing, QueryTime, to_optional_datetime
from services.api.verdicts.answers import (
    VerdictStore,
    build_frozen,
    describe_coverage,
    judge_answer,
    serialize_answer,
    serialize_island,
)
from services.api.verdicts.schemas import PartitionOut, RoundOut, VerdictOut

router = APIRouter(prefix="/v1/tenants/{tenant}/monitors", tags=["monitors"])

_FLAGS = (Flag.UNCOMMITTED, Flag.LOST, Flag.RESET, Flag.REWIND, Flag.FIRST_SEEN)
From = Annotated[QueryTime | None, Query(alias="from", description="Start of the time range, inclusive.")]
To = Annotated[QueryTime | None, Query(description="End of the time range, exclusive.")]


@router.get("/{monitor}/verdict", summary="Show the current verdict of a monitor, with its evidence")
async def show_verdict(tenant: Viewer, verdicts: Annotated[VerdictStore, part("verdicts")], monitor: str) -> VerdictOut:
    check_name(monitor)
    async with tenant.session() as session:
        measured = await read_measured(session, monitor)
        in_force = await freezes.read_covering(session, measured.row, await history.read_clock(session))
        stored_answer = await freezes.read_frozen_answer(session, in_force, measured.row["id"]) if in_force else None
    policy, topics, partial_reason = measured.policy, measured.topics, measured.partial_reason
    request = VerdictRequest(session.tenant_id, tuple(sorted(topics)), policy)
    judgment, answer = await judge_answer(verdicts, request, partial_reason, evidence=True)
    frozen = await build_frozen(verdicts, request, in_force, stored_answer, partial_reason)
    return VerdictOut(
        monitor=monitor,
        verdict=judgment.verdict.value,
        reason=judgment.reason.value,
        sentence=describe_coverage(judgment, policy, topics, partial_reason),
        value=judgment.value,
        active=judgment.active,
        judged_at=to_datetime(judgment.now_ms),
        newest_round_at=to_optional_datetime(judgment.at_ms),
        total=judgment.measured_total,
        partitions=judgment.partitions,
        missing=judgment.missing,
        members=judgment.members,
        activates_from_zero=judgment.activates_from_zero,
        island=None if judgment.island is None else serialize_island(judgment.island, topics),
        absent_topics=[topics[target] for target in judgment.absent if target in topics],
        answer=serialize_answer(answer) if frozen is None else frozen.answer,
        answer_sentence=describe_answer(judgment, policy, answer) if frozen is None else frozen.sentence,
        frozen=frozen,
        policy=list_effective_values(policy),
    )


@router.get("/{monitor}/samples", summary="List the samples of a monitor, the newest round first")
async def list_samples(
    tenant: Viewer, monitor: str, page_request: PageQuery, begin: From = None, to: To = None
) -> Listing[RoundOut]:
    check_name(monitor)
    after = None if page_request.after is None else _decode_position(page_request.after)
    async with tenant.session() as session:
        topics = (await read_measured(session, monitor)).topics
        rows = await history.read_samples(session, list(topics), SampleRange(page_request.limit, begin, to, after))
    page = rows[: page_request.limit]
    cursor = None
    if len(rows) > page_request.limit:
        cursor = encode_cursor([page[-1]["ts"].isoformat(), str(page[-1]["target_id"])])
    return Listing(items=[_serialize_round(sample, topics[sample["target_id"]]) for sample in page], next=cursor)


def _serialize_round(row: Row, topic: str) -> RoundOut:
    partitions: list[PartitionOut] = []
    missing: list[int] = []
    for number, lag in enumerate(row["lags"]):
        flags = Flag(row["flags"][number] or 0) if row["flags"] else Flag(0)
        if Flag.EXCLUDED in flags:
            continue
        if lag is None:
            missing.append(number)
            continue
        end = row["ends"][number]
        partitions.append(
            PartitionOut(
                partition=number,
                lag=lag,
                end_offset=end,
                position=end - lag,
                flags=[str(flag.name).lower() for flag in _FLAGS if flag in flags],
                lost=(row["lost"][number] or 0) if row["lost"] else 0,
            )
        )
    is_fresh = row["members"] is not None and (row["members_age"] or 0) <= MEMBERS_MAX_AGE_MS
    return RoundOut(
        at=row["ts"],
        topic=topic,
        partitions=partitions,
        missing=missing,
        members=row["members"] if is_fresh else None,
        topic_exists=not row["notes"] & Note.NO_TOPIC,
    )


def _decode_position(cursor: str) -> tuple[datetime, int]:
    when, target = decode_cursor(cursor, 2)
    try:
        return datetime.fromisoformat(when), int(target)
    except ValueError:
        raise InvalidInput([INVALID_CURSOR]) from None
