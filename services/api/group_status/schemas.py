"""The answer that shows the state of a group and of its partitions, in the field's words."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from services.api.schemas import ApiSchema

_STATUS_VALUES = "`ok`, `warn`, `stop`, `stall`, `rewind` or `unknown`."


class PartitionStatusOut(ApiSchema):
    """One partition: its state and the numbers behind it. All but names are null without a sample."""

    topic: str = Field(examples=["orders"])
    partition: int = Field(examples=[2])
    status: str = Field(examples=["stall"], description=_STATUS_VALUES)
    rule: str = Field(examples=["no_progress"], description="The rule that gave the state.")
    sentence: str = Field(
        examples=["The commit has not moved from 48,800 for at least 120 s, while the group had members; lag 1,200."]
    )
    at: datetime | None = Field(default=None, description="The newest sample's time.")
    lag: int | None = Field(default=None, examples=[1200], description="At that time, messages.")
    position: int | None = Field(default=None, examples=[48_800], description="Where the group reads next, an offset.")
    window_start: datetime | None = Field(default=None, description="The first sample that the state was told from.")
    start_lag: int | None = Field(default=None, examples=[400], description="At that time, messages.")
    commit_delta: int | None = Field(
        default=None, examples=[0], description="Messages by which the commit advanced since then; negative: back."
    )
    advance_count: int = Field(examples=[0], description="Pairs of neighbouring samples between which it advanced.")
    unchanged_since: datetime | None = Field(
        default=None, description="The commit has not moved since this sample; null where it moved last."
    )
    possibly_unchanged_earlier: bool = Field(description="Whether it may have stood still before that too.")
    uncommitted: bool = Field(description="Whether the group has no commit here.")
    lost: int = Field(examples=[0], description="Messages lost to retention.")
    stuck: bool = Field(description="The commit has stood still for `stuckAfterSeconds` though the group had members.")
    hot: bool = Field(description="Far more lag than the topic's other partitions.")


class GroupStatusOut(ApiSchema):
    """The state of a monitor's group. It reports; of all that, only `stuckAfterSeconds` changes the verdict."""

    monitor: str = Field(examples=["ingest-logs"])
    consumer_group: str = Field(examples=["lakerunner.ingest.logs"])
    status: str = Field(examples=["stall"], description=f"The worst of the partitions': {_STATUS_VALUES}")
    sentence: str = Field(examples=["Of 12 partitions: 1 stall, 11 ok."])
    counts: dict[str, int] = Field(examples=[{"ok": 11, "stall": 1}], description="Partitions by state.")
    window_seconds: float = Field(examples=[120.0], description="What the states are told from.")
    stuck_after_seconds: float = Field(examples=[120.0], description="After how long a partition is shown as stuck.")
    stuck_excluded: bool = Field(
        description="Whether the policy sets `stuckAfterSeconds`, so that the verdict leaves stuck partitions out."
    )
    members: int | None = Field(default=None, examples=[2], description="Of the group; null when not known.")
    newest_round_at: datetime | None = Field(default=None, description="The time of the newest round.")
    evaluated_at: datetime = Field(description="The database's clock.")
    unmeasured_topics: list[str] = Field(default_factory=list, description="Topics without a fresh round.")
    scope: str | None = Field(default=None, description="Why only a part of the monitor's topics is measured.")
    partitions: list[PartitionStatusOut] = Field(description="The worst first.")
