"""Response body of the status of a group and its partitions."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from services.api.schemas import ApiSchema

_STATUS_VALUES = "`ok`, `warn`, `stop`, `stall`, `rewind` or `unknown`."


class PartitionStatusOut(ApiSchema):
    """Status of one partition, and the numbers behind it, which are null without a sample."""

    topic: str = Field(examples=["orders"])
    partition: int = Field(examples=[2])
    status: str = Field(examples=["stall"], description=_STATUS_VALUES)
    rule: str = Field(examples=["no_progress"], description="Rule that determined the status.")
    sentence: str = Field(
        examples=["The commit has not moved from 48,800 for at least 120 s, while the group had members; lag 1,200."]
    )
    at: datetime | None = Field(default=None, description="Time of the newest sample.")
    lag: int | None = Field(default=None, examples=[1200], description="Lag at that time, messages.")
    position: int | None = Field(default=None, examples=[48_800], description="Next offset that the group reads.")
    window_start: datetime | None = Field(default=None, description="Time of the first sample of the window.")
    start_lag: int | None = Field(default=None, examples=[400], description="Lag at that time, messages.")
    commit_delta: int | None = Field(
        default=None,
        examples=[0],
        description="Messages by which the committed offset advanced in the window; negative: it moved back.",
    )
    advance_count: int = Field(examples=[0], description="Number of consecutive samples between which it advanced.")
    unchanged_since: datetime | None = Field(
        default=None,
        description="Time since which the committed offset is unchanged; null if it moved in the newest sample.",
    )
    possibly_unchanged_earlier: bool = Field(description="Whether it may have been unchanged before that too.")
    uncommitted: bool = Field(description="Whether the group has no committed offset.")
    lost: int = Field(examples=[0], description="Messages lost to retention.")
    stuck: bool = Field(
        description="Whether the committed offset is unchanged for `stuckAfterSeconds` while the group had members."
    )
    hot: bool = Field(description="Whether it lags far more than the other partitions of the topic.")


class OpenTransactionOut(ApiSchema):
    """A partition whose last stable offset does not move although messages lie behind it."""

    topic: str = Field(examples=["orders"])
    partition: int = Field(examples=[2])
    messages: int = Field(examples=[1463], description="Offsets between the last stable one and the high watermark.")
    stable_offset: int = Field(examples=[200], description="Last stable offset.")
    since: datetime = Field(description="First reading of this last stable offset, which may be older.")
    read_at: datetime = Field(description="Newest reading; there is one every 30 to 60 s.")
    sentence: str


class GroupStatusOut(ApiSchema):
    """Status of a monitor's group. It only reports: of all this, only `stuckAfterSeconds` affects the verdict."""

    monitor: str = Field(examples=["ingest-logs"])
    consumer_group: str = Field(examples=["lakerunner.ingest.logs"])
    status: str = Field(examples=["stall"], description=f"Worst status of the partitions: {_STATUS_VALUES}")
    sentence: str = Field(examples=["Of 12 partitions: 1 stall, 11 ok."])
    counts: dict[str, int] = Field(examples=[{"ok": 11, "stall": 1}], description="Partitions by status.")
    window_seconds: float = Field(
        examples=[120.0], description="Length of the window that statuses are determined from."
    )
    stuck_after_seconds: float = Field(examples=[120.0], description="Time after which a partition counts as stuck.")
    stuck_excluded: bool = Field(
        description="Whether the policy sets `stuckAfterSeconds`, so that the verdict excludes stuck partitions."
    )
    members: int | None = Field(default=None, examples=[2], description="Members of the group; null if unknown.")
    newest_round_at: datetime | None = Field(default=None, description="Time of the newest round.")
    evaluated_at: datetime = Field(description="Time of the evaluation, by the database's clock.")
    unmeasured_topics: list[str] = Field(default_factory=list, description="Topics without a fresh round.")
    partial_reason: str | None = Field(
        default=None, description="Why only a part of the monitor's topics is measured; null if all are."
    )
    open_transactions: list[OpenTransactionOut] = Field(
        default_factory=list, description="Partitions with an open transaction, those with the most messages first."
    )
    partitions: list[PartitionStatusOut] = Field(description="The worst first.")
