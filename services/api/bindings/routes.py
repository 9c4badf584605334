"""/v1/tenants/{tenant}/bindings: which Kubernetes namespaces belong to the tenant.

Only the platform's administrators write: a tenant that could bind namespaces could claim those of another team.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from lagscale.store.registry import bindings
from services.api.bindings.schemas import BindingIn, BindingOut, serialize_binding
from services.api.deps import DryRun, PageQuery, PlatformAdmin, Viewer, set_status
from services.api.schemas import Line, Listing, serialize_page

router = APIRouter(prefix="/v1/tenants/{tenant}/bindings", tags=["bindings"])


@router.get("", summary="List the bindings of a tenant")
async def list_bindings(tenant: Viewer, page_request: PageQuery) -> Listing[BindingOut]:
    async with tenant.session() as session:
        page = await bindings.list_page(session, page_request)
    return serialize_page(page, serialize_binding)


@router.post("", status_code=201, responses={200: {"model": BindingOut}}, summary="Bind a namespace to a tenant")
async def bind(tenant: PlatformAdmin, given: BindingIn, response: Response, dry_run: DryRun = False) -> BindingOut:
    async with tenant.session() as tenant_session:
        tenant_id = tenant_session.tenant_id
    # Bindings of one instance exclude each other across tenants, so this transaction has to see all of them.
    async with tenant.platform_session(dry_run=dry_run) as session:
        outcome = await bindings.put(session, tenant_id, given.instance, given.namespace)
    set_status(response, created=outcome.created)
    return serialize_binding(outcome.row)


@router.delete("", status_code=204, summary="Delete a binding")
async def unbind(
    tenant: PlatformAdmin, namespace: Annotated[Line, Query()], instance: Annotated[Line, Query()] = "default"
) -> None:
    async with tenant.session() as session:
        await bindings.remove(session, instance, namespace)
