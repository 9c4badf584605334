"""Bodies of freezes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, Field

from services.api.schemas import ApiSchema, Line


class FreezeIn(ApiSchema):
    """A freeze as it shall be; one of the two ends is given."""

    reason: Annotated[Line, Field(min_length=1)] = Field(
        examples=["brokers move to another rack"], description="Shown to whoever asks why, also in KEDA's events."
    )
    until: AwareDatetime | None = Field(
        default=None, examples=[None], description="The end, by the database's clock; at most 30 days from now."
    )
    for_seconds: int | None = Field(
        default=None, ge=1, le=2_592_000, examples=[7200], description="Or how long from now on."
    )


class FreezeOut(ApiSchema):
    """A freeze that has not ended."""

    kind: str = Field(examples=["monitor"], description="`tenant`, `cluster` or `monitor`.")
    name: str | None = Field(default=None, examples=["ingest-logs"], description="Null for the whole tenant.")
    reason: str = Field(examples=["brokers move to another rack"])
    since: datetime = Field(description="KEDA gets what was known then.")
    until: datetime
    frozen_by: str = Field(examples=["key 3f9a1c5e7b20 (ci)"], description="Who froze it, or last changed its end.")
