"""Response body of an explanation: the evaluation of the samples, the recorded answers, and why they differ."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from services.api.schemas import ApiSchema
from services.api.verdicts.schemas import AnswerOut, FrozenOut, IslandOut


class RegistrationOut(ApiSchema):
    """The registration of the monitor at that time."""

    version: int = Field(examples=[3], description="Version of the policy.")
    valid_from: datetime = Field(description="Start of that version.")
    valid_until: datetime | None = Field(default=None, description="End of that version; null while it is in force.")
    created_at: datetime
    deleted_at: datetime | None = None
    topics: list[str] = Field(examples=[["orders"]])
    policy: dict[str, str | int | float | bool] = Field(description="Every policy key with its effective value.")


class ValueStepOut(ApiSchema):
    """One rule that changed the value."""

    rule: str = Field(
        examples=["replica_cap"],
        description="`active_value`, `stuck`, `time_lag`, `even_split`, `replica_cap`, `lagging_cap`, `recovering`, `floor`, `scale_up`, "
        "`scale_down`, `last_known` or `activation`, in this order.",
    )
    before: float | None = Field(default=None, examples=[5000.0], description="Null if the verdict is unknown.")
    after: float = Field(examples=[1500.0])
    text: str = Field(examples=["Capped by the number of partitions."])


class MissingSampleOut(ApiSchema):
    """A partition without a fresh sample, or a topic without any sample."""

    topic: str = Field(examples=["orders"])
    partition: int | None = Field(default=None, examples=[4], description="Null: the topic has no sample.")
    since: datetime | None = Field(default=None, description="Time of its newest sample; null: it never had one.")
    age_seconds: float | None = Field(default=None, examples=[75.0])
    lag: int | None = Field(default=None, description="Lag in that sample, messages.")


class StuckPartitionOut(ApiSchema):
    """A partition whose committed offset does not advance although the group has members."""

    topic: str = Field(examples=["orders"])
    partition: int = Field(examples=[4])


class TimeLagOut(ApiSchema):
    """Age of the oldest unread message, seconds."""

    seconds: float = Field(examples=[21.2])
    at_least: float = Field(examples=[15.0])
    at_most: float | None = Field(
        default=None, examples=[30.0], description="Null: the message is older than any stored sample."
    )


class EvaluationOut(ApiSchema):
    """Evaluation of the samples until that time, by the policy of that time."""

    verdict: str = Field(examples=["sustained"], description="`sustained`, `calm` or `unknown`.")
    reason: str = Field(examples=["lasted"])
    sentence: str = Field(examples=["Partition 2 of orders has been above 500 for 130 s, and sustainSeconds is 120 s."])
    value: float | None = Field(default=None, examples=[1500.0])
    active: bool | None = None
    activity_reason: str | None = Field(
        default=None,
        examples=["sustained"],
        description="Why it is active: `sustained`, `backlog`, `progress` or `scale_down`; null if it is not active, or if this was not computed.",
    )
    newest_round_at: datetime | None = Field(default=None, description="Time of the newest round.")
    age_seconds: float | None = Field(default=None, examples=[4.2], description="Age of the newest round at that time.")
    stale_after_seconds: float = Field(examples=[30.0])
    total: int | None = Field(
        examples=[5000],
        description="Total lag of the fresh partitions, messages, before the rules; null if none is fresh.",
    )
    partitions: int = Field(examples=[3], description="Partitions in scope.")
    lagging: int = Field(examples=[3], description="Partitions in scope with lag, excluding stuck ones.")
    members: int | None = Field(default=None, examples=[2], description="Members of the group; null if unknown.")
    missing: list[MissingSampleOut] = Field(default_factory=list, description="At most 100, the oldest first.")
    missing_count: int = Field(examples=[0])
    stuck: list[StuckPartitionOut] = Field(default_factory=list)
    islands: list[IslandOut] = Field(
        default_factory=list,
        description="Runs above the threshold that reach the newest sample, the longest first. For `metric: timeLag` only "
        "the longest one, with its lag in seconds.",
    )
    time_lag: TimeLagOut | None = Field(default=None, description="For `metric: timeLag`, the maximum over partitions.")
    recovering: bool = Field(description="Whether every sustained backlog will be consumed within `drainSeconds`.")
    absent_topics: list[str] = Field(default_factory=list, description="Topics of the monitor that do not exist.")
    steps: list[ValueStepOut] = Field(default_factory=list, description="Rules that changed the value, in order.")
    deciding_rule: str | None = Field(
        default=None, examples=["replica_cap"], description="The last rule that changed the value."
    )
    answer: AnswerOut | None = Field(default=None, description="Null: KEDA gets an error.")
    answer_sentence: str = Field(examples=["KEDA gets value 1,500, active."])
    samples_complete: bool = Field(description="Whether all samples that the verdict reads are still retained.")


class DecisionOut(ApiSchema):
    """An answer of a replica to KEDA, as recorded then. It never changes."""

    replica: str = Field(examples=["lagscale-scaler-7d9f-1"])
    answered_at: datetime
    newest_round_at: datetime | None = Field(default=None, description="Time of the newest round that it read.")
    verdict: str = Field(examples=["sustained"])
    value: float | None = Field(default=None, examples=[1500.0], description="Null: KEDA got an error.")
    active: bool | None = None
    last_known: bool
    reason: str = Field(examples=["lasted"])
    grpc_code: str = Field(examples=["OK"], description="gRPC status code.")
    registration_version: int | None = Field(
        default=None, examples=[3], description="Version of the registration that the replica had."
    )
    overrides: dict[str, str] | None = Field(default=None, description="Policy keys that the ScaledObject overrides.")


class ComparedDecisionOut(DecisionOut):
    """The answer of a replica in force at that time, and whether the evaluation agrees."""

    agrees: bool | None = Field(default=None, description="Null if the samples of that time are no longer retained.")
    reasons: list[str] = Field(default_factory=list, examples=[["other_policy"]], description="Why they differ.")
    difference: str | None = Field(default=None, description="The reasons in a sentence.")


class LagPointOut(ApiSchema):
    """Lag in one step of the time before, messages."""

    at: datetime
    total: int = Field(examples=[5000], description="Maximum total lag of all partitions.")
    max_partition_lag: int = Field(examples=[4000], description="Maximum lag of a partition within the step.")
    max_partition_lag_low: int = Field(
        examples=[4000], description="Minimum, within the step, of the maximum lag of a partition."
    )


class ExplanationOut(ApiSchema):
    """Explanation of the answers at a point in time."""

    monitor: str = Field(examples=["ingest-logs"])
    at: datetime
    now: datetime = Field(description="Time of the database's clock.")
    sentence: str = Field(
        examples=[
            "Partition 2 of orders has been above 500 for 130 s, and sustainSeconds is 120 s: "
            "total lag 5,000, value 1,500 (capped by the number of partitions). Answer to KEDA: value 1,500, active."
        ]
    )
    registration: RegistrationOut
    frozen: FrozenOut | None = Field(
        default=None, description="Freezes that began before that time and have not ended; null without one."
    )
    evaluation: EvaluationOut | None = Field(default=None, description="Null if the samples are no longer retained.")
    answers: list[ComparedDecisionOut] = Field(
        default_factory=list, description="Newest decision of each replica, if it is at most six minutes older."
    )
    previous_answer: DecisionOut | None = Field(
        default=None, description="The newest older decision, if no replica has one of that time."
    )
    decisions: list[DecisionOut] = Field(
        default_factory=list, description="Decisions of the time that `lag` covers, the newest first, at most 200."
    )
    notes: list[str] = Field(default_factory=list, description="Further facts about that time.")
    lag: list[LagPointOut] = Field(default_factory=list, description="The oldest first.")
    threshold: int | None = Field(
        default=None, examples=[500], description="Messages; null for `metric: timeLag`, whose threshold is in seconds."
    )
    uses_total_lag: bool = Field(description="Whether the threshold applies to the total (`persistenceScope: total`).")
