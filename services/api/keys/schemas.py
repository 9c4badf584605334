"""Request and response bodies of API keys and their rotation."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, Field

from lagscale.store.registry.api_keys import TENANT_ADMIN, TENANT_VIEWER, CreatedKey
from lagscale.store.registry.session import Row
from services.api.schemas import ApiSchema, Line

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


def serialize_key(row: Row) -> KeyOut:
    """A key's row as a body, without the secret."""
    return KeyOut.model_validate({name: row[name] for name in KeyOut.model_fields})


def serialize_new_key(created: CreatedKey) -> NewKeyOut:
    """A new key as a body, with its secret."""
    return NewKeyOut.model_validate(serialize_key(created.row).model_dump() | {"key": created.text})
