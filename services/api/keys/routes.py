"""API keys of a tenant, and of the platform's administrators. A key is shown once, when it is created."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, get_args

from fastapi import APIRouter
from pydantic import AwareDatetime, Field

from lagscale.errors import FieldError, InvalidInput, NotFound
from lagscale.store.registry import api_keys
from lagscale.store.registry.api_keys import PLATFORM_ADMIN, TENANT_ADMIN, TENANT_VIEWER, CreatedKey
from services.api.deps import PageQuery, Platform, ScopeAccess, TenantAccess, TenantAdmin
from services.api.schemas import ApiSchema, Line, Listing, serialize_page

router = APIRouter(tags=["keys"])
_TENANT_PATH = "/v1/tenants/{tenant}/keys"
_PLATFORM_PATH = "/v1/keys"
_DAY_SECONDS = 86_400
#: A longer overlap would leave a second key that is easily forgotten.
_MAX_OVERLAP_SECONDS = 30 * _DAY_SECONDS


class KeyIn(ApiSchema):
    """An API key to create."""

    name: Annotated[Line, Field(min_length=1)] = Field(examples=["ci"])
    role: str = Field(examples=[TENANT_ADMIN], description=f"`{TENANT_ADMIN}` or `{TENANT_VIEWER}`.")
    expires_at: AwareDatetime | None = Field(default=None, description="Default: the key does not expire.")


class PlatformKeyIn(ApiSchema):
    """An API key of the platform's administrators to create."""

    name: Annotated[Line, Field(min_length=1)] = Field(examples=["platform-team"])
    expires_at: AwareDatetime | None = Field(default=None, description="Default: the key does not expire.")


class KeyOut(ApiSchema):
    """An API key, without its secret."""

    prefix: str = Field(examples=["3f9a1c5e7b20"], description="Identifies the key in URLs.")
    name: str = Field(examples=["ci"])
    role: str = Field(examples=[TENANT_ADMIN])
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    replaced_by: str | None = Field(default=None, description="Prefix of its successor, once rotated.")


class NewKeyOut(KeyOut):
    """A new API key. It is shown only once."""

    key: str = Field(examples=["lsk_3f9a1c5e7b20_..."])


class RotationIn(ApiSchema):
    """How a key is rotated."""

    overlap_seconds: int = Field(
        default=_DAY_SECONDS,
        ge=0,
        le=_MAX_OVERLAP_SECONDS,
        examples=[_DAY_SECONDS],
        description="How long the old key stays valid; 0 ends it at once.",
    )
    expires_at: AwareDatetime | None = Field(
        default=None,
        description="When the new key expires. Default: after the same lifetime as the old key's.",
    )


def _serialize_new_key(created: CreatedKey) -> NewKeyOut:
    return NewKeyOut.from_row(created.row, key=created.text)


def _add_routes(path: str, noun: str, owner: str, access_type: Any) -> None:
    """The routes that the keys of a tenant and of the platform share; `access_type` is `TenantAdmin` or `Platform`."""
    (_, requires_access) = get_args(access_type)

    @router.get(path, name=f"list_{noun}s", summary=f"List the API keys of {owner}")
    async def list_keys(
        *, access: ScopeAccess | TenantAccess = requires_access, page_request: PageQuery
    ) -> Listing[KeyOut]:
        async with access.session() as session:
            page = await api_keys.list_page(session, page_request)
        return serialize_page(page, KeyOut.from_row)

    @router.delete(path + "/{prefix}", name=f"revoke_{noun}", status_code=204, summary=f"Revoke an API key of {owner}")
    async def revoke_key(prefix: str, access: ScopeAccess | TenantAccess = requires_access) -> None:
        _check_prefix(prefix)
        async with access.session() as session:
            await api_keys.revoke(session, prefix)

    @router.post(
        path + "/{prefix}/rotate", name=f"rotate_{noun}", status_code=201, summary=f"Rotate an API key of {owner}"
    )
    async def rotate_key(
        prefix: str, given: RotationIn, access: ScopeAccess | TenantAccess = requires_access
    ) -> NewKeyOut:
        _check_prefix(prefix)
        async with access.session() as session:
            created = await api_keys.rotate(session, prefix, timedelta(seconds=given.overlap_seconds), given.expires_at)
        return _serialize_new_key(created)


_add_routes(_TENANT_PATH, "key", "a tenant", TenantAdmin)
_add_routes(_PLATFORM_PATH, "platform_key", "the platform", Platform)


@router.post(_TENANT_PATH, status_code=201, summary="Create an API key for a tenant")
async def create_key(tenant: TenantAdmin, given: KeyIn) -> NewKeyOut:
    if given.role not in {TENANT_ADMIN, TENANT_VIEWER}:
        raise InvalidInput([FieldError("role", f"must be {TENANT_ADMIN} or {TENANT_VIEWER}")])
    async with tenant.session() as session:
        created = await api_keys.create(session, given.name, given.role, given.expires_at)
    return _serialize_new_key(created)


@router.post(_PLATFORM_PATH, status_code=201, summary="Create an API key for the platform's administrators")
async def create_platform_key(platform: Platform, given: PlatformKeyIn) -> NewKeyOut:
    async with platform.session() as session:
        created = await api_keys.create(session, given.name, PLATFORM_ADMIN, given.expires_at)
    return _serialize_new_key(created)


def _check_prefix(text: str) -> None:
    if not text.isalnum() or not text.isascii():
        raise NotFound
