"""/v1/tenants/{tenant}/bindings: which Kubernetes namespaces belong to the tenant.

Only the platform's administrators write: a tenant that could bind namespaces could claim those of another team.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from lagscale.store.registry import bindings
from services.api.deps import DryRun, PageQuery, PlatformAdmin, Viewer, set_status
from services.api.schemas import ApiSchema, Line, Listing, serialize_page

router = APIRouter(prefix="/v1/tenants/{tenant}/bindings", tags=["bindings"])


class BindingIn(ApiSchema):
    """A KEDA instance and Kubernetes namespace whose ScaledObjects belong to the tenant."""

    instance: Annotated[Line, Field(min_length=1)] = Field(
        default="default", description="KEDA instance: the name in its client certificate, or `default` without one."
    )
    namespace: Annotated[Line, Field(min_length=1)] = Field(
        examples=["shop-production"], description="Kubernetes namespace, or `*` for all namespaces of the instance."
    )


class BindingOut(BindingIn):
    """A binding of the tenant."""

    created_at: datetime


@router.get("", summary="List the bindings of a tenant")
async def list_bindings(tenant: Viewer, page_request: PageQuery) -> Listing[BindingOut]:
    async with tenant.session() as session:
        page = await bindings.list_page(session, page_request)
    return serialize_page(page, BindingOut.from_row)


@router.post("", status_code=201, responses={200: {"model": BindingOut}}, summary="Bind a namespace to a tenant")
async def bind(tenant: PlatformAdmin, given: BindingIn, response: Response, dry_run: DryRun = False) -> BindingOut:
    async with tenant.session() as tenant_session:
        tenant_id = tenant_session.tenant_id
    # Bindings of one instance exclude each other across tenants, so this transaction has to see all of them.
    async with tenant.platform_session(dry_run=dry_run) as session:
        outcome = await bindings.put(session, tenant_id, given.instance, given.namespace)
    set_status(response, created=outcome.created)
    return BindingOut.from_row(outcome.row)


@router.delete("", status_code=204, summary="Delete a binding")
async def unbind(
    tenant: PlatformAdmin, namespace: Annotated[Line, Query()], instance: Annotated[Line, Query()] = "default"
) -> None:
    async with tenant.session() as session:
        await bindings.remove(session, instance, namespace)
