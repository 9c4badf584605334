"""The brake: freezes of tenants, clusters and monitors, and what a frozen monitor answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from lagscale.clock import to_datetime
from lagscale.domain.verdict.contract import Answer, Judgment, VerdictRequest
from lagscale.domain.verdict.freezes import Freeze, build_frozen_request, describe_freezes
from lagscale.errors import FieldError, InvalidInput
from lagscale.store.registry import freezes
from lagscale.store.registry.freezes import FreezeSubject
from lagscale.store.registry.paging import Page, PageRequest
from lagscale.store.registry.session import AccessScope, RegistryDatabase, Row
from lagscale.store.registry.versions import WriteResult
from services.api.freezes.schemas import FreezeIn, FreezeOut
from services.api.verdicts.schemas import AnswerOut, FrozenOut

#: As `freezes.read_frozen_answer` gives it: None while nothing is kept yet, (None,) where there was nothing to hold.
StoredAnswer = tuple[Answer | None] | None


class FrozenVerdictStore(Protocol):
    """The part of the verdict's store that is used here."""

    async def judge(self, requests: Sequence[VerdictRequest]) -> list[Judgment]: ...

    async def find_last_known(self, request: VerdictRequest, judgment: Judgment) -> Answer | None: ...


class Freezing:
    """Begins, shows and ends freezes."""

    def __init__(self, database: RegistryDatabase) -> None:
        self._database = database

    async def list_page(self, scope: AccessScope, tenant: str, page_request: PageRequest) -> Page:
        async with self._database.tenant(scope, tenant) as session:
            return await freezes.list_page(session, page_request)

    async def show(self, scope: AccessScope, tenant: str, target: FreezeSubject) -> Row:
        async with self._database.tenant(scope, tenant) as session:
            return await freezes.read_by_name(session, target)

    async def put(self, scope: AccessScope, tenant: str, target: FreezeSubject, given: FreezeIn) -> WriteResult:
        if (given.until is None) == (given.for_seconds is None):
            raise InvalidInput([FieldError("until", "or forSeconds must be given, and only one of them")])
        until = given.until or timedelta(seconds=given.for_seconds or 0)
        # Two first ones at once make one freeze.
        async with self._database.tenant(scope, tenant, lock=True) as session:
            return await freezes.put(session, target, reason=given.reason.strip(), until=until)

    async def remove(self, scope: AccessScope, tenant: str, target: FreezeSubject) -> None:
        async with self._database.tenant(scope, tenant, lock=True) as session:
            await freezes.remove(session, target)


async def find_frozen_answer(
    verdicts: FrozenVerdictStore, request: VerdictRequest, in_force: Sequence[Freeze], stored_answer: StoredAnswer
) -> Answer | None:
    """What a monitor under these freezes answers; worked out where KEDA has not asked for it yet.

    Args:
        verdicts: the store, in the scaler's role.
        request: the monitor, with all its topics; its targets were found behind the tenant's wall.
        in_force: the freezes, the oldest first; at least one.
        stored_answer: what the scaler keeps under them.
    """
    if stored_answer is not None:
        return stored_answer[0]
    asked = build_frozen_request(request, in_force[0].since_ms)
    (judgment,) = await verdicts.judge([asked])
    return await verdicts.find_last_known(asked, judgment)


def serialize_freeze(row: Row) -> FreezeOut:
    """The body of a freeze."""
    return FreezeOut(
        kind=row["kind"],
        name=row["name"] or None,
        reason=row["reason"],
        since=row["since"],
        until=row["until"],
        frozen_by=row["actor"],
    )


def serialize_frozen(in_force: Sequence[Freeze], answer: Answer | None) -> FrozenOut:
    """How a moment under these freezes is shown."""
    answer_out = None
    if answer is not None:
        known_ms = answer.last_known_ms
        answer_out = AnswerOut(
            value=answer.value,
            active=answer.active,
            last_known=True,
            known_at=None if known_ms is None else to_datetime(known_ms),
        )
    return FrozenOut(
        sentence=describe_freezes(in_force, has_answer=answer is not None),
        since=to_datetime(in_force[0].since_ms),
        until=to_datetime(max(one.until_ms for one in in_force)),
        reasons=[one.reason for one in in_force],
        answer=answer_out,
    )
