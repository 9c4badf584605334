"""Request and response bodies of freezes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, Field

from lagscale.store.registry.session import Row
from services.api.schemas import ApiSchema, Line


class FreezeIn(ApiSchema):
    """Desired state of a freeze; exactly one of `until` and `forSeconds` is set."""

    reason: Annotated[Line, Field(min_length=1)] = Field(
        examples=["brokers move to another rack"], description="Shown in explanations and in KEDA's events."
    )
    until: AwareDatetime | None = Field(
        default=None,
        examples=[None],
        description="End of the freeze, by the database's clock; at most 30 days from now.",
    )
    for_seconds: int | None = Field(
        default=None, ge=1, le=2_592_000, examples=[7200], description="Duration from now on."
    )


class FreezeOut(ApiSchema):
    """A freeze that has not ended."""

    kind: str = Field(examples=["monitor"], description="`tenant`, `cluster` or `monitor`.")
    name: str | None = Field(default=None, examples=["ingest-logs"], description="Null for the whole tenant.")
    reason: str = Field(examples=["brokers move to another rack"])
    since: datetime = Field(description="KEDA gets the answer of this time.")
    until: datetime
    frozen_by: str = Field(examples=["key 3f9a1c5e7b20 (ci)"], description="Who created or last changed it.")


def serialize_freeze(row: Row) -> FreezeOut:
    """A freeze's row as a body."""
    return FreezeOut(
        kind=row["kind"],
        name=row["name"] or None,
        reason=row["reason"],
        since=row["since"],
        until=row["until"],
        frozen_by=row["actor"],
    )
