"""Rotation of API keys with an overlap: the successor is handed out while its predecessor still opens."""

from __future__ import annotations

from datetime import timedelta

from pydantic import AwareDatetime, Field

from lagscale.store.registry import api_keys
from lagscale.store.registry.api_keys import NewKey
from lagscale.store.registry.session import RegistryDatabase, Scope
from services.api.schemas import Payload

_DAY_SECONDS = 86_400
#: A longer overlap would be a second key that nobody thinks of.
_MOST_SECONDS = 30 * _DAY_SECONDS


class RotationIn(Payload):
    """How a key makes room for its successor."""

    overlap_seconds: int = Field(
        default=_DAY_SECONDS,
        ge=0,
        le=_MOST_SECONDS,
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

    async def of_tenant(self, scope: Scope, tenant: str, prefix: str, given: RotationIn) -> NewKey:
        """Rotate a tenant's key.

        Raises:
            NotFound: no such tenant or key for this scope.
            Conflict: the key is not valid any more, or has a successor already.
        """
        async with self._database.tenant(scope, tenant) as work:
            return await api_keys.rotate(work, prefix, timedelta(seconds=given.overlap_seconds), given.expires_at)

    async def of_platform(self, scope: Scope, prefix: str, given: RotationIn) -> NewKey:
        """Rotate a key of the platform's administrators.

        Raises:
            NotFound, Conflict: as `of_tenant`.
        """
        async with self._database.within(scope) as work:
            return await api_keys.rotate(work, prefix, timedelta(seconds=given.overlap_seconds), given.expires_at)
