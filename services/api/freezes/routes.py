"""Freezes of a tenant, of a cluster and of a monitor: while one is in force, KEDA gets the answer of its beginning."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Response
from pydantic import AwareDatetime, Field

from lagscale.errors import FieldError, InvalidInput
from lagscale.store.registry import freezes
from lagscale.store.registry.freezes import CLUSTER, MONITOR, TENANT, FreezeSubject
from lagscale.store.registry.session import Row
from services.api.deps import PageQuery, TenantAdmin, Viewer, check_name, set_status
from services.api.schemas import ApiSchema, Line, Listing, serialize_page

router = APIRouter(prefix="/v1/tenants/{tenant}", tags=["freezes"])


class FreezeIn(ApiSchema):
    """Desired state of a freeze; exactly one of `until` and `forSeconds` is set."""

    reason: Annotated[Line, Field(min_length=1)] = Field(
        examples=["brokers move to another rack"], description="Shown in explanations and in KEDA's events."
    )
    until: AwareDatetime | None = Field(
        default=None,
        examples=[None],
        description="End of the freeze, by the database's clock; at most 30 days from now.",
    )
    for_seconds: int | None = Field(
        default=None, ge=1, le=2_592_000, examples=[7200], description="Duration from now on."
    )


class FreezeOut(ApiSchema):
    """A freeze that has not ended."""

    kind: str = Field(examples=["monitor"], description="`tenant`, `cluster` or `monitor`.")
    name: str | None = Field(default=None, examples=["ingest-logs"], description="Null for the whole tenant.")
    reason: str = Field(examples=["brokers move to another rack"])
    since: datetime = Field(description="KEDA gets the answer of this time.")
    until: datetime
    frozen_by: str = Field(examples=["key 3f9a1c5e7b20 (ci)"], description="Who created or last changed it.")


def _serialize_freeze(row: Row) -> FreezeOut:
    return FreezeOut.from_row(row, name=row["name"] or None, frozen_by=row["actor"])


def _name_tenant() -> FreezeSubject:
    return FreezeSubject(TENANT)


def _name_cluster(cluster: str) -> FreezeSubject:
    return FreezeSubject(CLUSTER, check_name(cluster))


def _name_monitor(monitor: str) -> FreezeSubject:
    return FreezeSubject(MONITOR, check_name(monitor))


@router.get("/freezes", summary="List the freezes of a tenant that have not ended")
async def list_freezes(tenant: Viewer, page_request: PageQuery) -> Listing[FreezeOut]:
    async with tenant.session() as session:
        page = await freezes.list_page(session, page_request)
    return serialize_page(page, _serialize_freeze)


def _add_routes(path: str, kind: str, name_subject: Callable[..., FreezeSubject], put_summary: str) -> None:
    """The routes of the freeze of one kind of object, which `name_subject` reads from the path."""
    subject_of_path = Depends(name_subject)

    @router.get(path, name=f"show_{kind}_freeze", summary=f"Show the freeze of a {kind}")
    async def show_freeze(tenant: Viewer, subject: FreezeSubject = subject_of_path) -> FreezeOut:
        async with tenant.session() as session:
            row = await freezes.read_by_name(session, subject)
        return _serialize_freeze(row)

    @router.put(path, name=f"freeze_{kind}", responses={201: {"model": FreezeOut}}, summary=put_summary)
    async def put_freeze(
        tenant: TenantAdmin, given: FreezeIn, response: Response, subject: FreezeSubject = subject_of_path
    ) -> FreezeOut:
        if (given.until is None) == (given.for_seconds is None):
            raise InvalidInput([FieldError("until", "or forSeconds must be given, and only one of them")])
        until = given.until or timedelta(seconds=given.for_seconds or 0)
        # Under the lock two first PUTs create one freeze.
        async with tenant.session(lock=True) as session:
            outcome = await freezes.put(session, subject, reason=given.reason.strip(), until=until)
        set_status(response, created=outcome.created)
        return _serialize_freeze(outcome.row)

    @router.delete(path, name=f"unfreeze_{kind}", status_code=204, summary=f"End the freeze of a {kind}")
    async def remove_freeze(tenant: TenantAdmin, subject: FreezeSubject = subject_of_path) -> None:
        async with tenant.session(lock=True) as session:
            await freezes.remove(session, subject)


_add_routes("/freeze", TENANT, _name_tenant, "Freeze all monitors of a tenant")
_add_routes("/clusters/{cluster}/freeze", CLUSTER, _name_cluster, "Freeze all monitors of a cluster")
_add_routes("/monitors/{monitor}/freeze", MONITOR, _name_monitor, "Freeze a monitor")
