"""The brake: freezes of tenants, clusters and monitors, and what a frozen monitor answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from lagscale.domain.verdict.contract import Ask, Judgement, Told
from lagscale.domain.verdict.freezes import Freeze, as_of, frozen_sentence
from lagscale.errors import Fault, InvalidInput
from lagscale.store.registry import freezes
from lagscale.store.registry.freezes import Thing
from lagscale.store.registry.paging import Page, Wanted
from lagscale.store.registry.session import RegistryDatabase, Row, Scope
from lagscale.store.registry.versions import Outcome
from lagscale.store.samples.columns import instant
from services.api.freezes.schemas import FreezeIn, FreezeOut
from services.api.verdicts.schemas import FrozenOut, ToldOut

#: As `freezes.answer` gives it: None while nothing is kept yet, (None,) where there was nothing to hold.
Kept = tuple[Told | None] | None


class Verdicts(Protocol):
    """The part of the verdict's store that is used here."""

    async def judge(self, asks: Sequence[Ask]) -> list[Judgement]: ...

    async def hold(self, ask: Ask, judgement: Judgement) -> Told | None: ...


class Freezing:
    """Begins, shows and ends freezes."""

    def __init__(self, database: RegistryDatabase) -> None:
        self._database = database

    async def listed(self, scope: Scope, tenant: str, wanted: Wanted) -> Page:
        async with self._database.tenant(scope, tenant) as work:
            return await freezes.listed(work, wanted)

    async def show(self, scope: Scope, tenant: str, thing: Thing) -> Row:
        async with self._database.tenant(scope, tenant) as work:
            return await freezes.named(work, thing)

    async def put(self, scope: Scope, tenant: str, thing: Thing, given: FreezeIn) -> Outcome:
        if (given.until is None) == (given.for_seconds is None):
            raise InvalidInput([Fault("until", "or forSeconds must be given, and only one of them")])
        until = given.until or timedelta(seconds=given.for_seconds or 0)
        # Two first ones at once make one freeze.
        async with self._database.tenant(scope, tenant, lock=True) as work:
            return await freezes.put(work, thing, reason=given.reason.strip(), until=until)

    async def remove(self, scope: Scope, tenant: str, thing: Thing) -> None:
        async with self._database.tenant(scope, tenant, lock=True) as work:
            await freezes.remove(work, thing)


async def frozen_answer(verdicts: Verdicts, ask: Ask, present: Sequence[Freeze], kept: Kept) -> Told | None:
    """What a monitor under these freezes answers; worked out where KEDA has not asked for it yet.

    Args:
        verdicts: the store, in the scaler's role.
        ask: the monitor, with all its topics; its targets were found behind the tenant's wall.
        present: the freezes, the oldest first; at least one.
        kept: what the scaler keeps under them.
    """
    if kept is not None:
        return kept[0]
    asked = as_of(ask, present[0].since_ms)
    (judgement,) = await verdicts.judge([asked])
    return await verdicts.hold(asked, judgement)


def freeze_of(row: Row) -> FreezeOut:
    """The body of a freeze."""
    return FreezeOut(
        of=row["kind"],
        name=row["name"] or None,
        reason=row["reason"],
        since=row["since"],
        until=row["until"],
        by=row["actor"],
    )


def frozen_of(present: Sequence[Freeze], answer: Told | None) -> FrozenOut:
    """How a moment under these freezes is shown."""
    told = None
    if answer is not None:
        known = answer.held_since_ms
        told = ToldOut(
            value=answer.value, active=answer.active, held=True, held_since=None if known is None else instant(known)
        )
    return FrozenOut(
        sentence=frozen_sentence(present, holds=answer is not None),
        since=instant(present[0].since_ms),
        until=instant(max(one.until_ms for one in present)),
        reasons=[one.reason for one in present],
        answer=told,
    )
