"""Answers that show what was measured and judged: verdict, samples, health."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from services.api.schemas import ApiSchema, StateOut


class IslandOut(ApiSchema):
    """The trailing run of samples above the threshold that matters most; without a topic it is the total's."""

    topic: str | None = Field(default=None, examples=["orders"])
    partition: int | None = Field(default=None, examples=[2])
    lag: int = Field(examples=[4000], description="Newest lag, messages.")
    since: datetime
    duration_seconds: float = Field(examples=[130.0], description="Last sample's time minus the first's.")
    start_known: bool = Field(description="Whether it is known to have begun there.")


class AnswerOut(ApiSchema):
    """What KEDA is told of the monitor."""

    value: float = Field(examples=[1500.0])
    active: bool
    last_known: bool = Field(description="Whether this is the last known answer, held while the lag is unknown.")
    known_at: datetime | None = None


class FrozenOut(ApiSchema):
    """What a monitor under a freeze answers."""

    sentence: str = Field(
        examples=["Frozen until 2030-01-31T12:00:00Z (maintenance): KEDA gets the last-known answer."]
    )
    since: datetime = Field(description="The answer is that of this moment.")
    until: datetime = Field(description="When the last of its freezes ends.")
    reasons: list[str] = Field(examples=[["brokers move to another rack"]], description="Of each, the oldest first.")
    answer: AnswerOut | None = Field(default=None, description="Null: nothing was known that could be held.")


class VerdictOut(ApiSchema):
    """A verdict with its evidence, judged when it was asked for."""

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
        examples=[5000], description="Lag of the fresh partitions, messages, before caps; null where none is fresh."
    )
    partitions: int = Field(examples=[3], description="In scope.")
    missing: int = Field(examples=[0], description="Of these without a fresh sample.")
    members: int | None = Field(default=None, examples=[2], description="Of the group; null when not known.")
    activates_from_zero: bool = Field(
        description="Backlog is proven and the group has no members, though the verdict is unknown."
    )
    island: IslandOut | None = None
    absent_topics: list[str] = Field(default_factory=list, description="Topics of the monitor that do not exist.")
    answer: AnswerOut | None = Field(default=None, description="Null: KEDA gets an error.")
    answer_sentence: str = Field(examples=["KEDA gets value 1,500, active."])
    frozen: FrozenOut | None = Field(
        default=None, description="What a freeze tells KEDA in place of the verdict; null while there is none."
    )
    policy: dict[str, str | int | float | bool] = Field(description="Every key of the policy, resolved.")


class PartitionOut(ApiSchema):
    """One partition of one round. An offset is a message's number."""

    partition: int = Field(examples=[0])
    lag: int = Field(examples=[1200])
    end_offset: int = Field(examples=[50_000])
    position: int = Field(examples=[48_800])
    flags: list[str] = Field(default_factory=list, examples=[["lost"]])
    lost: int = Field(default=0, description="Messages lost to retention.")


class RoundOut(ApiSchema):
    """One poll of one topic."""

    at: datetime
    topic: str = Field(examples=["orders"])
    partitions: list[PartitionOut]
    missing: list[int] = Field(default_factory=list, description="Partitions that could not be read.")
    members: int | None = Field(default=None, description="Of the group, as last read; null when not known.")
    topic_exists: bool = True


class TargetHealth(ApiSchema):
    """What is measured, its state, and how old its newest sample is."""

    cluster: str = Field(examples=["main"])
    consumer_group: str = Field(examples=["lakerunner.ingest.logs"])
    topic: str = Field(examples=["orders"])
    state: StateOut | None = Field(default=None, description="Null until the scraper has asked.")
    newest_sample_at: datetime | None = None
    newest_sample_age_seconds: float | None = Field(default=None, examples=[4.2])


class MonitorHealth(ApiSchema):
    """A monitor's cluster and targets."""

    monitor: str = Field(examples=["ingest-logs"])
    cluster_state: StateOut | None = None
    scope: StateOut | None = Field(default=None, description="How looking up its topics went; null for a list.")
    targets: list[TargetHealth]


class ClusterHealth(ApiSchema):
    """A cluster's state, and how its targets fare."""

    cluster: str = Field(examples=["main"])
    state: StateOut | None = Field(default=None, description="Null until the scraper has asked.")
    targets: int = Field(examples=[12])
    targets_by_code: dict[str, int] = Field(examples=[{"ok": 11, "no_topic": 1}])
    newest_sample_age_seconds: float | None = Field(default=None, examples=[4.2])
    stalest_target_age_seconds: float | None = Field(
        default=None, examples=[9.8], description="Of the target that waits the longest; null if one has no sample."
    )


class TenantHealth(ApiSchema):
    """All clusters of a tenant."""

    tenant: str = Field(examples=["shop"])
    ok: bool = Field(description="Every cluster and every target was fine when last asked.")
    clusters: list[ClusterHealth]
