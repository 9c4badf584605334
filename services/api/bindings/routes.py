"""/v1/tenants/{tenant}/bindings: which Kubernetes namespace asks for this tenant.

Only the platform's administrators write: a tenant that could bind namespaces could take another team's.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from services.api.auth.authenticator import PlatformAdmin, Viewer
from services.api.deps import OperationsPart, PageQuery, Tenant
from services.api.dry_run import SUPPORTS_DRY_RUN
from services.api.schemas import BindingIn, BindingOut, Line, Listing
from services.api.serializers import serialize_binding

router = APIRouter(prefix="/v1/tenants/{tenant}/bindings", tags=["bindings"])


@router.get("", summary="List a tenant's bindings")
async def list_bindings(
    caller: Viewer, operations: OperationsPart, tenant: Tenant, page_request: PageQuery
) -> Listing[BindingOut]:
    page = await operations.list_bindings(caller.scope, tenant, page_request)
    return Listing(items=[serialize_binding(row) for row in page.rows], next=page.after)


@router.post(
    "",
    status_code=201,
    responses={200: {"model": BindingOut}},
    summary="Bind a namespace to the tenant",
    dependencies=[SUPPORTS_DRY_RUN],
)
async def bind(
    caller: PlatformAdmin, operations: OperationsPart, tenant: Tenant, given: BindingIn, response: Response
) -> BindingOut:
    outcome = await operations.bind(caller.scope, tenant, given)
    response.status_code = 201 if outcome.created else 200
    return serialize_binding(outcome.row)


@router.delete("", status_code=204, summary="Unbind a namespace")
async def unbind(
    caller: PlatformAdmin,
    operations: OperationsPart,
    tenant: Tenant,
    namespace: Annotated[Line, Query()],
    instance: Annotated[Line, Query()] = "default",
) -> None:
    await operations.unbind(caller.scope, tenant, instance, namespace)
