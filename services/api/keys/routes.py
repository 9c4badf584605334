"""API keys of a tenant, and of the platform's administrators. A key is shown once, when it is created."""

from __future__ import annotations

from datetime import timedelta

from fastapi import APIRouter

from lagscale.errors import FieldError, InvalidInput, NotFound
from lagscale.store.registry import api_keys
from services.api.deps import PageQuery, Platform, TenantAdmin
from services.api.keys.schemas import (
    KeyIn,
    KeyOut,
    NewKeyOut,
    PlatformKeyIn,
    RotationIn,
    serialize_key,
    serialize_new_key,
)
from services.api.schemas import Listing, serialize_page

router = APIRouter(tags=["keys"])
_TENANT_PATH = "/v1/tenants/{tenant}/keys"
_PLATFORM_PATH = "/v1/keys"
_TENANT_ROLES = (api_keys.TENANT_ADMIN, api_keys.TENANT_VIEWER)


@router.get(_TENANT_PATH, summary="List the API keys of a tenant")
async def list_keys(tenant: TenantAdmin, page_request: PageQuery) -> Listing[KeyOut]:
    async with tenant.session() as session:
        page = await api_keys.list_page(session, page_request)
    return serialize_page(page, serialize_key)


@router.post(_TENANT_PATH, status_code=201, summary="Create an API key for a tenant")
async def create_key(tenant: TenantAdmin, given: KeyIn) -> NewKeyOut:
    if given.role not in _TENANT_ROLES:
        raise InvalidInput([FieldError("role", f"must be {' or '.join(_TENANT_ROLES)}")])
    async with tenant.session() as session:
        created = await api_keys.create(session, given.name, given.role, given.expires_at)
    return serialize_new_key(created)


@router.delete(_TENANT_PATH + "/{prefix}", status_code=204, summary="Revoke an API key of a tenant")
async def revoke_key(tenant: TenantAdmin, prefix: str) -> None:
    _check_prefix(prefix)
    async with tenant.session() as session:
        await api_keys.revoke(session, prefix)


@router.post(_TENANT_PATH + "/{prefix}/rotate", status_code=201, summary="Rotate an API key of a tenant")
async def rotate_key(tenant: TenantAdmin, prefix: str, given: RotationIn) -> NewKeyOut:
    _check_prefix(prefix)
    async with tenant.session() as session:
        created = await api_keys.rotate(session, prefix, timedelta(seconds=given.overlap_seconds), given.expires_at)
    return serialize_new_key(created)


@router.get(_PLATFORM_PATH, summary="List the API keys of the platform")
async def list_platform_keys(platform: Platform, page_request: PageQuery) -> Listing[KeyOut]:
    async with platform.session() as session:
        page = await api_keys.list_page(session, page_request)
    return serialize_page(page, serialize_key)


@router.post(_PLATFORM_PATH, status_code=201, summary="Create an API key for the platform's administrators")
async def create_platform_key(platform: Platform, given: PlatformKeyIn) -> NewKeyOut:
    async with platform.session() as session:
        created = await api_keys.create(session, given.name, api_keys.PLATFORM_ADMIN, given.expires_at)
    return serialize_new_key(created)


@router.delete(_PLATFORM_PATH + "/{prefix}", status_code=204, summary="Revoke an API key of the platform")
async def revoke_platform_key(platform: Platform, prefix: str) -> None:
    _check_prefix(prefix)
    async with platform.session() as session:
        await api_keys.revoke(session, prefix)


@router.post(_PLATFORM_PATH + "/{prefix}/rotate", status_code=201, summary="Rotate an API key of the platform")
async def rotate_platform_key(platform: Platform, prefix: str, given: RotationIn) -> NewKeyOut:
    _check_prefix(prefix)
    async with platform.session() as session:
        created = await api_keys.rotate(session, prefix, timedelta(seconds=given.overlap_seconds), given.expires_at)
    return serialize_new_key(created)


def _check_prefix(text: str) -> None:
    if not text.isalnum() or not text.isascii():
        raise NotFound
