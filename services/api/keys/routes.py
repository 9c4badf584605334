"""API keys of a tenant, and of the platform's administrators. A key is shown once, when it is made."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from lagscale.errors import NotFound
from services.api.auth.access import PlatformAdmin, TenantAdmin
from services.api.deps import OperationsPart, Tenant, WantedPage
from services.api.keys.rotation import KeyRotation, RotationIn
from services.api.schemas import KeyIn, KeyMade, KeyOut, Listing, PlatformKeyIn
from services.api.serializers import key_of, made_key_of

router = APIRouter(tags=["keys"])
_OF_TENANT = "/v1/tenants/{tenant}/keys"
_OF_PLATFORM = "/v1/keys"


def _rotation(request: Request) -> KeyRotation:
    return KeyRotation(request.app.state.database)


RotationPart = Annotated[KeyRotation, Depends(_rotation)]


@router.get(_OF_TENANT, summary="List a tenant's keys")
async def list_keys(
    caller: TenantAdmin, operations: OperationsPart, tenant: Tenant, wanted: WantedPage
) -> Listing[KeyOut]:
    page = await operations.list_keys(caller.scope, tenant, wanted)
    return Listing(items=[key_of(row) for row in page.rows], next=page.after)


@router.post(_OF_TENANT, status_code=201, summary="Make a key for a tenant")
async def create_key(caller: TenantAdmin, operations: OperationsPart, tenant: Tenant, given: KeyIn) -> KeyMade:
    return made_key_of(await operations.create_key(caller.scope, tenant, given))


@router.delete(_OF_TENANT + "/{prefix}", status_code=204, summary="Revoke a tenant's key")
async def revoke_key(caller: TenantAdmin, operations: OperationsPart, tenant: Tenant, prefix: str) -> None:
    await operations.revoke_key(caller.scope, tenant, _prefix(prefix))


@router.post(_OF_TENANT + "/{prefix}/rotate", status_code=201, summary="Make a tenant's key a successor")
async def rotate_key(
    caller: TenantAdmin, rotation: RotationPart, tenant: Tenant, prefix: str, given: RotationIn
) -> KeyMade:
    return made_key_of(await rotation.of_tenant(caller.scope, tenant, _prefix(prefix), given))


@router.get(_OF_PLATFORM, summary="List the platform's keys")
async def list_platform_keys(caller: PlatformAdmin, operations: OperationsPart, wanted: WantedPage) -> Listing[KeyOut]:
    page = await operations.list_platform_keys(caller.scope, wanted)
    return Listing(items=[key_of(row) for row in page.rows], next=page.after)


@router.post(_OF_PLATFORM, status_code=201, summary="Make a key for the platform's administrators")
async def create_platform_key(caller: PlatformAdmin, operations: OperationsPart, given: PlatformKeyIn) -> KeyMade:
    return made_key_of(await operations.create_platform_key(caller.scope, given))


@router.delete(_OF_PLATFORM + "/{prefix}", status_code=204, summary="Revoke a key of the platform")
async def revoke_platform_key(caller: PlatformAdmin, operations: OperationsPart, prefix: str) -> None:
    await operations.revoke_platform_key(caller.scope, _prefix(prefix))


@router.post(_OF_PLATFORM + "/{prefix}/rotate", status_code=201, summary="Make a key of the platform a successor")
async def rotate_platform_key(caller: PlatformAdmin, rotation: RotationPart, prefix: str, given: RotationIn) -> KeyMade:
    return made_key_of(await rotation.of_platform(caller.scope, _prefix(prefix), given))


def _prefix(text: str) -> str:
    if not text.isalnum() or not text.isascii():
        raise NotFound
    return text
