"""Response body of an audit event."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from lagscale.store.registry.session import Row
from services.api.schemas import ApiSchema


class AuditEventOut(ApiSchema):
    """One change. `before` and `after` hold the object's columns; secrets appear as `set`."""

    id: UUID = Field(description="Identifies duplicates where two exports overlap.")
    at: datetime
    tenant: str | None = Field(examples=["shop"], description="Null for objects of the platform.")
    actor: str = Field(
        examples=["key 3f9a1c5e7b20 (ci)"],
        description="`key PREFIX (NAME)`, `oidc SUBJECT`, `bootstrap key`, `environment`, `keda INSTANCE/NAMESPACE` or "
        "`housekeeping`.",
    )
    action: str = Field(examples=["monitor.update"])
    object: str = Field(examples=["monitor/orders"])
    origin: str | None = Field(
        examples=["10.1.2.3"], description="Address of the client; null for changes without a request."
    )
    before: dict[str, Any] | None = Field(description="Null if the object was created.")
    after: dict[str, Any] | None = Field(description="Null if the object was deleted.")


def serialize_event(row: Row) -> AuditEventOut:
    """An event's row as a body."""
    return AuditEventOut.model_validate({name: row[name] for name in AuditEventOut.model_fields})
