"""Response bodies of verdicts and samples."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from services.api.schemas import ApiSchema


class IslandOut(ApiSchema):
    """A run of samples above the threshold up to the newest one; of the total if it has no topic."""

    topic: str | None = Field(default=None, examples=["orders"])
    partition: int | None = Field(default=None, examples=[2])
    lag: int = Field(examples=[4000], description="Newest lag, messages.")
    since: datetime
    duration_seconds: float = Field(examples=[130.0], description="Time of the last sample minus that of the first.")
    start_known: bool = Field(description="Whether it is known to have started there.")


class AnswerOut(ApiSchema):
    """The answer that KEDA gets."""

    value: float = Field(examples=[1500.0])
    active: bool
    last_known: bool = Field(description="Whether this is the last known answer, returned while the lag is unknown.")
    known_at: datetime | None = Field(default=None, description="Of a last known answer: when it was known.")


class FrozenOut(ApiSchema):
    """Freezes that cover a monitor, and the answer that KEDA gets under them."""

    sentence: str = Field(
        examples=["Frozen until 2030-01-31T12:00:00Z (maintenance): KEDA gets the last-known answer."]
    )
    since: datetime = Field(description="The answer is that of this time.")
    until: datetime = Field(description="End of the freeze that ends last.")
    reasons: list[str] = Field(
        examples=[["brokers move to another rack"]], description="Reason of each freeze, the oldest first."
    )
    answer: AnswerOut | None = Field(default=None, description="Null: no answer was known, so KEDA gets an error.")


class VerdictOut(ApiSchema):
    """The verdict of a monitor at present, with its evidence."""

    monitor: str = Field(examples=["ingest-logs"])
    verdict: str = Field(examples=["sustained"], description="`sustained`, `calm` or `unknown`.")
    reason: str = Field(examples=["lasted"])
    sentence: str = Field(
        examples=[
            "Partition 2 of orders has been above 500 for 130 s, and sustainSeconds is 120 s: "
            "total lag 5,000, value 1,500 (capped by the number of partitions)."
        ]
    )
    value: float | None = Field(default=None, examples=[1500.0], description="Messages; null while unknown.")
    active: bool | None = Field(default=None, description="Null while unknown.")
    judged_at: datetime = Field(description="The database's clock.")
    newest_round_at: datetime | None = Field(default=None, description="The time of the newest round.")
    total: int | None = Field(
        examples=[5000], description="Total lag of the fresh partitions, messages, before caps; null if none is fresh."
    )
    partitions: int = Field(examples=[3], description="Partitions in scope.")
    missing: int = Field(examples=[0], description="Partitions in scope without a fresh sample.")
    members: int | None = Field(default=None, examples=[2], description="Members of the group; null if unknown.")
    activates_from_zero: bool = Field(
        description="Whether KEDA activates from zero although the verdict is unknown: a backlog is proven and the group has no members."
    )
    island: IslandOut | None = None
    absent_topics: list[str] = Field(default_factory=list, description="Topics of the monitor that do not exist.")
    answer: AnswerOut | None = Field(default=None, description="Null: KEDA gets an error.")
    answer_sentence: str = Field(examples=["KEDA gets value 1,500, active."])
    frozen: FrozenOut | None = Field(
        default=None, description="The freezes in force, whose answer KEDA gets instead; null without one."
    )
    policy: dict[str, str | int | float | bool] = Field(description="Every policy key with its effective value.")


class PartitionOut(ApiSchema):
    """One partition of a round."""

    partition: int = Field(examples=[0])
    lag: int = Field(examples=[1200])
    end_offset: int = Field(examples=[50_000])
    position: int = Field(examples=[48_800])
    flags: list[str] = Field(default_factory=list, examples=[["lost"]])
    lost: int = Field(default=0, description="Messages lost to retention.")


class RoundOut(ApiSchema):
    """One poll of a topic."""

    at: datetime
    topic: str = Field(examples=["orders"])
    partitions: list[PartitionOut]
    missing: list[int] = Field(default_factory=list, description="Partitions that could not be read.")
    members: int | None = Field(default=None, description="Members of the group, as last read; null if unknown.")
    topic_exists: bool = True
