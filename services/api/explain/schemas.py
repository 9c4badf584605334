"""The answer that explains a moment: what the samples say of it, what KEDA was told, and why the two differ."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from services.api.schemas import ApiSchema
from services.api.verdicts.schemas import AnswerOut, FrozenOut, IslandOut


class RegistrationOut(ApiSchema):
    """The monitor as it was registered at the moment."""

    version: int = Field(examples=[3], description="Of the policy.")
    valid_from: datetime = Field(description="Since when that policy.")
    valid_until: datetime | None = Field(default=None, description="Null while it is in force.")
    created_at: datetime
    deleted_at: datetime | None = None
    topics: list[str] = Field(examples=[["orders"]])
    policy: dict[str, str | int | float | bool] = Field(description="Every key of the policy, resolved.")


class ValueStepOut(ApiSchema):
    """One rule that changed the value."""

    rule: str = Field(
        examples=["replica_cap"],
        description="`stuck`, `time_lag`, `even_split`, `replica_cap`, `lagging_cap`, `draining`, `floor`, `scale_up`, "
        "`scale_down`, `held` or `waking`, in this order.",
    )
    before: float | None = Field(default=None, examples=[5000.0], description="Null where the verdict is unknown.")
    after: float = Field(examples=[1500.0])
    text: str = Field(examples=["Capped by the number of partitions."])


class MissingSampleOut(ApiSchema):
    """A partition without a fresh sample, or a whole topic without any."""

    topic: str = Field(examples=["orders"])
    partition: int | None = Field(default=None, examples=[4], description="Null: the topic has no sample at all.")
    since: datetime | None = Field(default=None, description="Its newest sample; null: it never had one.")
    age_seconds: float | None = Field(default=None, examples=[75.0])
    lag: int | None = Field(default=None, description="In that sample, messages.")


class StuckPartitionOut(ApiSchema):
    """A partition whose commit stands still under a running group."""

    topic: str = Field(examples=["orders"])
    partition: int = Field(examples=[4])


class TimeLagOut(ApiSchema):
    """For how long the oldest unread message had waited, seconds."""

    seconds: float = Field(examples=[21.2])
    at_least: float = Field(examples=[15.0])
    at_most: float | None = Field(default=None, examples=[30.0], description="Null: it came before anything stored.")


class EvaluationOut(ApiSchema):
    """What the samples until the moment say of it, by the policy of that time."""

    verdict: str = Field(examples=["sustained"], description="`sustained`, `calm` or `unknown`.")
    reason: str = Field(examples=["lasted"])
    sentence: str = Field(examples=["Partition 2 of orders has been above 500 for 130 s, and sustainSeconds is 120 s."])
    value: float | None = Field(default=None, examples=[1500.0])
    active: bool | None = None
    activity_reason: str | None = Field(
        default=None,
        examples=["sustained"],
        description="Why it is active: `sustained`, `backlog` or `work`; null where it is not, or was not looked up.",
    )
    newest_round_at: datetime | None = Field(default=None, description="The time of the newest round.")
    age_seconds: float | None = Field(default=None, examples=[4.2], description="Of the newest round at the moment.")
    stale_after_seconds: float = Field(examples=[30.0])
    total: int | None = Field(
        examples=[5000],
        description="Lag of the fresh partitions, messages, before the rules; null where none is fresh.",
    )
    partitions: int = Field(examples=[3], description="In scope.")
    lagging: int = Field(examples=[3], description="Of these with lag, the stuck ones left out.")
    members: int | None = Field(default=None, examples=[2], description="Of the group; null when not known.")
    missing: list[MissingSampleOut] = Field(default_factory=list, description="At most 100, the oldest first.")
    missing_count: int = Field(examples=[0])
    stuck: list[StuckPartitionOut] = Field(default_factory=list)
    islands: list[IslandOut] = Field(
        default_factory=list,
        description="Runs above the threshold that reach the newest sample, the longest first. Of `metric: timeLag` only "
        "the one that matters most, its lag in seconds.",
    )
    time_lag: TimeLagOut | None = Field(default=None, description="Of `metric: timeLag`, the greatest of a partition.")
    recovering: bool = Field(description="Every lasting backlog will be gone within `drainSeconds`.")
    absent_topics: list[str] = Field(default_factory=list, description="Topics of the monitor that do not exist.")
    steps: list[ValueStepOut] = Field(default_factory=list, description="The rules that changed the value, in order.")
    deciding_rule: str | None = Field(
        default=None, examples=["replica_cap"], description="The rule that had the last word."
    )
    answer: AnswerOut | None = Field(default=None, description="Null: KEDA gets an error.")
    answer_sentence: str = Field(examples=["KEDA gets value 1,500, active."])
    whole: bool = Field(description="Whether every sample that the verdict may look at is still kept.")


class DecisionOut(ApiSchema):
    """What a replica told KEDA, as it wrote it down then. It never changes."""

    replica: str = Field(examples=["lagscale-scaler-7d9f-1"])
    answered_at: datetime
    newest_round_at: datetime | None = Field(default=None, description="The newest round that it saw.")
    verdict: str = Field(examples=["sustained"])
    value: float | None = Field(default=None, examples=[1500.0], description="Null: an error was told.")
    active: bool | None = None
    last_known: bool
    reason: str = Field(examples=["lasted"])
    code: str = Field(examples=["OK"], description="Of gRPC.")
    version: int | None = Field(default=None, examples=[3], description="Of the registration that it knew.")
    overrides: dict[str, str] | None = Field(default=None, description="Policy keys of the ScaledObject's own.")


class ComparedDecisionOut(DecisionOut):
    """What a replica last told at the moment, and whether the samples say the same."""

    agrees: bool | None = Field(default=None, description="Null where the samples of that time are no longer kept.")
    why: list[str] = Field(default_factory=list, examples=[["other_policy"]], description="Why they differ.")
    difference: str | None = Field(default=None, description="The same in a sentence.")


class LagPointOut(ApiSchema):
    """Lag in one step of the time before the moment, messages."""

    at: datetime
    total: int = Field(examples=[5000], description="Of all partitions.")
    greatest: int = Field(examples=[4000], description="Of the partition that lagged most.")
    least: int = Field(examples=[4000], description="The least that the greatest was within this step.")


class ExplanationOut(ApiSchema):
    """A moment explained."""

    monitor: str = Field(examples=["ingest-logs"])
    at: datetime
    now: datetime = Field(description="The database's clock.")
    sentence: str = Field(
        examples=[
            "Partition 2 of orders has been above 500 for 130 s, and sustainSeconds is 120 s: "
            "total lag 5,000, value 1,500 (capped by the number of partitions). Answer to KEDA: value 1,500, active."
        ]
    )
    registration: RegistrationOut
    frozen: FrozenOut | None = Field(
        default=None, description="Where a freeze that has not ended began before the moment: what KEDA gets."
    )
    evaluation: EvaluationOut | None = Field(default=None, description="Null where they are no longer kept.")
    answers: list[ComparedDecisionOut] = Field(
        default_factory=list, description="Of each replica the newest decision, if it is no older than six minutes."
    )
    previous_answer: DecisionOut | None = Field(
        default=None, description="The newest older decision, where no replica has one of the moment."
    )
    decisions: list[DecisionOut] = Field(
        default_factory=list, description="Of the time that `lag` shows, the newest first, at most 200."
    )
    notes: list[str] = Field(default_factory=list, description="What else is to be known of the moment.")
    lag: list[LagPointOut] = Field(default_factory=list, description="The oldest first.")
    threshold: int | None = Field(
        default=None, examples=[500], description="Messages; null for `metric: timeLag`, whose threshold is seconds."
    )
    uses_total_lag: bool = Field(description="Whether the threshold is the total's (`persistenceScope: total`).")
