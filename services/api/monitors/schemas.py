"""Request and response bodies of monitors, one by one and in bulk, and of their validation."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from lagscale.domain.topics import MAX_EXCLUDED
from lagscale.store.registry.monitor_spec import read_given
from lagscale.store.registry.session import Row
from services.api.schemas import (
    ApiSchema,
    FieldErrorOut,
    Group,
    Line,
    Name,
    PolicyKeys,
    StateOut,
    Topic,
    WarningOut,
    serialize_state,
    split_list,
)

ChangeOutcome = Literal["created", "changed", "unchanged", "deleted"]
#: Changes of one request, which take a few seconds.
MAX_CHANGES = 1000


class MonitorIn(ApiSchema):
    """Desired state of a monitor: what is measured, and the policy by which it is judged."""

    name: Name | None = Field(default=None, examples=["ingest-logs"], description="KEDA's `serviceType`.")
    cluster: Name = Field(examples=["main"])
    consumer_group: Group = Field(examples=["lakerunner.ingest.logs"])
    topics: Annotated[list[Topic], BeforeValidator(split_list), Field(min_length=1)] | None = Field(
        default=None,
        examples=[["lakerunner.objstore.ingest.logs"]],
        description="Omitted together with `topicPattern`: all topics on which the group has commits.",
    )
    topic_pattern: Line | None = Field(
        default=None, description="Instead of `topics`: an RE2 regular expression that matches whole topic names."
    )
    exclude_topics: Annotated[list[Line], BeforeValidator(split_list)] = Field(
        default_factory=list,
        max_length=MAX_EXCLUDED,
        description="Names or patterns of topics to exclude from those of the pattern or the group.",
    )
    policy: PolicyKeys = Field(default_factory=dict)
    overridable: bool = Field(
        default=False, description="Whether ScaledObjects may set policy keys next to `serviceType`."
    )


class RegistrantOut(ApiSchema):
    """The ScaledObject whose metadata registered a monitor."""

    instance: str = Field(examples=["default"], description="KEDA instance.")
    namespace: str = Field(examples=["shop-production"])
    scaled_object: str = Field(examples=["ingest-logs"])


class MonitorOut(ApiSchema):
    """A monitor; `policy` contains the keys that were set, the verdict shows the effective values of all keys."""

    name: str = Field(examples=["ingest-logs"])
    cluster: str = Field(examples=["main"])
    consumer_group: str = Field(examples=["lakerunner.ingest.logs"])
    topics: list[str] | None = Field(
        examples=[["lakerunner.objstore.ingest.logs"]], description="Null: topics are discovered."
    )
    topic_pattern: str | None = None
    exclude_topics: list[str] = Field(default_factory=list)
    measured_topics: list[str] = Field(
        examples=[["lakerunner.objstore.ingest.logs"]], description="Topics that are measured at present."
    )
    topic_discovery: StateOut | None = Field(
        default=None, description="State of the topic discovery; null if topics are listed, and before the first one."
    )
    policy: dict[str, str] = Field(examples=[{"lagThreshold": "500", "sustainSeconds": "120"}])
    overridable: bool
    inherited_policy: dict[str, str] = Field(
        default_factory=dict,
        examples=[{"holdSeconds": "600"}],
        description="Keys that the tenant's `policyDefaults` add, with the values in force.",
    )
    auto_registered: bool = Field(
        description="Registered by a ScaledObject's metadata; deleted when KEDA no longer asks."
    )
    registered_by: RegistrantOut | None = Field(
        default=None, description="The ScaledObject that registered it; null if unknown."
    )
    last_requested_at: datetime | None = Field(
        default=None, description="Last request of KEDA, accurate to some minutes."
    )
    deleted_at: datetime | None = Field(default=None, description="Null unless deleted.")
    created_at: datetime
    updated_at: datetime
    version: int = Field(examples=[1])
    warnings: list[WarningOut] = Field(default_factory=list, description="Of the validation at registration.")


class ChangeIn(ApiSchema):
    """One change: the desired state of a monitor, or the name of one to delete."""

    put: MonitorIn | None = Field(
        default=None, description="As the body of `PUT`, with `name`. Exactly one of `put` and `delete`."
    )
    delete: Name | None = Field(
        default=None, examples=["ingest-logs"], description="A monitor that does not exist is not an error."
    )
    version: int | None = Field(
        default=None,
        ge=0,
        le=2**31 - 1,
        examples=[3],
        description="Version that was read, as in `If-Match`; 0: the monitor must not exist.",
    )

    @model_validator(mode="after")
    def _check_put_or_delete(self) -> Self:
        if (self.put is None) == (self.delete is None):
            raise ValueError("must have either put or delete")
        return self


class ChangesIn(ApiSchema):
    """Changes that are applied together or not at all. Each name may occur once."""

    items: list[ChangeIn] = Field(
        min_length=1,
        max_length=MAX_CHANGES,
        examples=[
            [
                {"put": {"name": "ingest-logs", "cluster": "main", "consumerGroup": "ingest", "topics": ["logs"]}},
                {"delete": "ingest-traces", "version": 3},
            ]
        ],
    )


class FieldDifference(ApiSchema):
    """A field before and after; null if absent."""

    before: Any = Field(examples=["500"])
    after: Any = Field(examples=["700"])


class ChangeOut(ApiSchema):
    """Outcome of one change, or of its dry run."""

    name: str = Field(examples=["ingest-logs"])
    outcome: ChangeOutcome = Field(examples=["changed"])
    version: int | None = Field(
        examples=[4],
        description="Version of the monitor after the change; of a dry run before it. Null without a monitor.",
    )
    differences: dict[str, FieldDifference] = Field(
        default_factory=dict,
        examples=[{"policy.lagThreshold": {"before": "500", "after": "700"}}],
        description="Differences by field; empty for a deleted monitor.",
    )


class ChangesOut(ApiSchema):
    """Outcomes of the changes, in their order."""

    dry_run: bool = Field(description="Whether nothing was changed.")
    created: int = Field(examples=[1])
    changed: int = Field(examples=[0])
    unchanged: int = Field(examples=[0])
    deleted: int = Field(examples=[1])
    items: list[ChangeOut]


class TopicCheckOut(ApiSchema):
    """A topic of the monitor."""

    name: str = Field(examples=["orders"])
    partitions: int | None = Field(default=None, description="0: the topic does not exist; null: unknown.")
    committed_partitions: int | None = Field(
        default=None, description="Partitions on which the group has committed; null: unknown."
    )
    lag: int | None = Field(default=None, description="Current lag of these partitions, messages; null: unknown.")
    lost: int | None = Field(
        default=None, description="Messages of these partitions that retention deleted before the group read them."
    )
    unstable: int | None = Field(
        default=None,
        description="Messages of these partitions behind the last stable offset, held back by an open transaction.",
    )


class GroupCheckOut(ApiSchema):
    """The consumer group."""

    name: str = Field(examples=["lakerunner.ingest.logs"])
    group_type: str | None = Field(default=None, examples=["consumer"], description="`classic` or `consumer`.")
    members: int | None = Field(default=None, description="Null: unknown.")


class WindowOut(ApiSchema):
    """How far back the policy reads samples. Samples are retained for longer than any policy may read back."""

    sustain_seconds: float = Field(examples=[120.0])
    sampling_interval: float = Field(examples=[10.0])
    min_samples: int = Field(
        examples=[13], description="Minimum number of consecutive samples above the threshold for a sustained verdict."
    )
    lookback_seconds: float = Field(examples=[305.0])
    max_lookback_seconds: float = Field(examples=[64_800.0], description="Maximum for any policy.")
    first_verdict_within_seconds: float = Field(examples=[130.0], description="Maximum time until the first verdict.")


class CurrentVerdictOut(ApiSchema):
    """The verdict that the monitor would have at present."""

    verdict: str = Field(examples=["unknown"], description="`sustained`, `calm` or `unknown`.")
    sentence: str = Field(examples=["Nothing is measured yet, so the verdict is unknown; 40 messages wait at present."])
    value: float | None = Field(default=None, description="Messages; null while unknown.")
    from_samples: bool = Field(
        description="Whether it is judged by stored samples; else only the current lag is known."
    )
    lag: int | None = Field(default=None, description="Current lag, messages; null: unknown.")


class ValidationOut(ApiSchema):
    """Result of a validation. Nothing is stored."""

    valid: bool = Field(
        examples=[True], description="Whether the registration would be accepted; it may have warnings."
    )
    errors: list[FieldErrorOut] = Field(default_factory=list)
    warnings: list[WarningOut] = Field(default_factory=list)
    topics: list[TopicCheckOut] = Field(default_factory=list)
    group: GroupCheckOut | None = None
    window: WindowOut | None = None
    current_verdict: CurrentVerdictOut | None = None


def serialize_monitor(row: Row) -> MonitorOut:
    """A monitor's row as a body."""
    policy = read_given(row)
    return MonitorOut.from_row(
        row,
        topic_discovery=serialize_state(row, "scope_"),
        policy=policy,
        inherited_policy={name: text for name, text in row["policy"].items() if name not in policy},
        last_requested_at=row["last_asked_at"],
        warnings=[],
    )
