"""Response body of a validation: errors, warnings, and findings on topics, group, window and verdict."""

from __future__ import annotations

from pydantic import Field

from services.api.schemas import ApiSchema, FieldErrorOut, WarningOut


class TopicCheckOut(ApiSchema):
    """A topic of the monitor."""

    name: str = Field(examples=["orders"])
    partitions: int | None = Field(default=None, description="0: the topic does not exist; null: unknown.")
    committed_partitions: int | None = Field(
        default=None, description="Partitions on which the group has committed; null: unknown."
    )
    lag: int | None = Field(default=None, description="Current lag of these partitions, messages; null: unknown.")


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
