"""API keys of a tenant, and of the platform's administrators. A key is shown once, when it is made."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from lagscale.errors import NotFound
from services.api.auth.authenticator import PlatformAdmin, TenantAdmin
from services.api.deps import OperationsPart, PageQuery, Tenant
from services.api.keys.schemas import KeyRotation, RotationIn
from services.api.schemas import KeyIn, KeyOut, Listing, NewKeyOut, PlatformKeyIn
from services.api.serializers import serialize_key, serialize_new_key

router = APIRouter(tags=["keys"])
_TENANT_PATH = "/v1/tenants/{tenant}/keys"
_PLATFORM_PATH = "/v1/keys"


def _build_rotation(request: Request) -> KeyRotation:
    return KeyRotation(request.app.state.database)


RotationPart = Annotated[KeyRotation, Depends(_build_rotation)]


@router.get(_TENANT_PATH, summary="List a tenant's keys")
async def list_keys(
    caller: TenantAdmin, operations: OperationsPart, tenant: Tenant, page_request: PageQuery
) -> Listing[KeyOut]:
    page = await operations.list_keys(caller.scope, tenant, page_request)
    return Listing(items=[serialize_key(row) for row in page.rows], next=page.after)


@router.post(_TENANT_PATH, status_code=201, summary="Make a key for a tenant")
async def create_key(caller: TenantAdmin, operations: OperationsPart, tenant: Tenant, given: KeyIn) -> NewKeyOut:
    return serialize_new_key(await operations.create_key(caller.scope, tenant, given))


@router.delete(_TENANT_PATH + "/{prefix}", status_code=204, summary="Revoke a tenant's key")
async def revoke_key(caller: TenantAdmin, operations: OperationsPart, tenant: Tenant, prefix: str) -> None:
    await operations.revoke_key(caller.scope, tenant, _check_prefix(prefix))


@router.post(_TENANT_PATH + "/{prefix}/rotate", status_code=201, summary="Make a tenant's key a successor")
async def rotate_key(
    caller: TenantAdmin, rotation: RotationPart, tenant: Tenant, prefix: str, given: RotationIn
) -> NewKeyOut:
    return serialize_new_key(await rotation.of_tenant(caller.scope, tenant, _check_prefix(prefix), given))


@router.get(_PLATFORM_PATH, summary="List the platform's keys")
async def list_platform_keys(
    caller: PlatformAdmin, operations: OperationsPart, page_request: PageQuery
) -> Listing[KeyOut]:
    page = await operations.list_platform_keys(caller.scope, page_request)
    return Listing(items=[serialize_key(row) for row in page.rows], next=page.after)


@router.post(_PLATFORM_PATH, status_code=201, summary="Make a key for the platform's administrators")
async def create_platform_key(caller: PlatformAdmin, operations: OperationsPart, given: PlatformKeyIn) -> NewKeyOut:
    return serialize_new_key(await operations.create_platform_key(caller.scope, given))


@router.delete(_PLATFORM_PATH + "/{prefix}", status_code=204, summary="Revoke a key of the platform")
async def revoke_platform_key(caller: PlatformAdmin, operations: OperationsPart, prefix: str) -> None:
    await operations.revoke_platform_key(caller.scope, _check_prefix(prefix))


@router.post(_PLATFORM_PATH + "/{prefix}/rotate", status_code=201, summary="Make a key of the platform a successor")
async def rotate_platform_key(
    caller: PlatformAdmin, rotation: RotationPart, prefix: str, given: RotationIn
) -> NewKeyOut:
    return serialize_new_key(await rotation.of_platform(caller.scope, _check_prefix(prefix), given))


def _check_prefix(text: str) -> str:
    if not text.isalnum() or not text.isascii():
        raise NotFound
    return text
