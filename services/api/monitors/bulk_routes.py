"""/v1/tenants/{tenant}/monitors/bulk: many changes of monitors in one transaction."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from services.api.auth.authenticator import TenantAdmin
from services.api.deps import OperationsPart, Tenant
from services.api.monitors.bulk import BulkChanges
from services.api.monitors.bulk_schemas import ChangesIn, ChangesOut

router = APIRouter(prefix="/v1/tenants/{tenant}/monitors", tags=["monitors"])

DryRun = Annotated[bool, Query(alias="dryRun", description="Only tell what would change.")]


@router.post("/bulk", summary="Put and delete many monitors: all of them, or none")
async def change_monitors(
    caller: TenantAdmin, operations: OperationsPart, tenant: Tenant, given: ChangesIn, dry_run: DryRun = False
) -> ChangesOut:
    return await BulkChanges(operations).change(caller.scope, tenant, given, dry_run=dry_run)
