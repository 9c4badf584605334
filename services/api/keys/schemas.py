"""Rotation of API keys with an overlap: the successor is handed out while its predecessor still opens."""

from __future__ import annotations

from datetime import timedelta

from pydantic import AwareDatetime, Field

from lagscale.store.registry import api_keys
from lagscale.store.registry.api_keys import CreatedKey
from lagscale.store.registry.session import AccessScope, RegistryDatabase
from services.api.schemas import ApiSchema

_DAY_SECONDS = 86_400
#: A longer overlap would be a second key that nobody thinks of.
_MAX_SECONDS = 30 * _DAY_SECONDS


class RotationIn(ApiSchema):
    """How a key makes room for its successor."""

    overlap_seconds: int = Field(
        default=_DAY_SECONDS,
        ge=0,
        le=_MAX_SECONDS,
        examples=[_DAY_SECONDS],
        description="How long the old key stays valid beside the new one; 0 ends it at once.",
    )
    expires_at: AwareDatetime | None = Field(
        default=None,
        description="When the new key expires. Without it the new key lives as long as the old one was made for.",
    )


class KeyRotation:
    """The use case; `scope` is the caller's."""

    def __init__(self, database: RegistryDatabase) -> None:
        self._database = database

    async def of_tenant(self, scope: AccessScope, tenant: str, prefix: str, given: RotationIn) -> CreatedKey:
        """Rotate a tenant's key.

        Raises:
            NotFound: no such tenant or key for this scope.
            Conflict: the key is not valid any more, or has a successor already.
        """
        async with self._database.tenant(scope, tenant) as session:
            return await api_keys.rotate(session, prefix, timedelta(seconds=given.overlap_seconds), given.expires_at)

    async def of_platform(self, scope: AccessScope, prefix: str, given: RotationIn) -> CreatedKey:
        """Rotate a key of the platform's administrators.

        Raises:
            NotFound, Conflict: as `of_tenant`.
        """
        async with self._database.within(scope) as session:
            return await api_keys.rotate(session, prefix, timedelta(seconds=given.overlap_seconds), given.expires_at)
