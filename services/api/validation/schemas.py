"""Answers of a validation: what is wrong, what may be, and what was found of topics, group, window and verdict."""

from __future__ import annotations

from pydantic import Field

from services.api.schemas import ApiSchema, WarningOut


class FieldErrorOut(ApiSchema):
    """A fault for which the registration would be refused."""

    field: str = Field(examples=["policy.windowSize"])
    text: str = Field(examples=["(windowSize - 1) x samplingInterval must be at least sustainSeconds"])


class TopicCheckOut(ApiSchema):
    """A topic."""

    name: str = Field(examples=["orders"])
    partitions: int | None = Field(default=None, description="0: there is no such topic; null: that could not be told.")
    committed_partitions: int | None = Field(
        default=None, description="Partitions on which the group has committed; null: that could not be told."
    )
    lag: int | None = Field(default=None, description="Of the partitions committed on, messages, just now.")


class GroupCheckOut(ApiSchema):
    """The consumer group."""

    name: str = Field(examples=["lakerunner.ingest.logs"])
    kind: str | None = Field(default=None, examples=["consumer"], description="`classic` or `consumer`.")
    members: int | None = Field(default=None, description="Null: that could not be told.")


class WindowOut(ApiSchema):
    """What the policy looks back on. Samples are kept for longer than any policy may look back."""

    sustain_seconds: float = Field(examples=[120.0])
    sampling_interval: float = Field(examples=[10.0])
    min_samples: int = Field(examples=[13], description="Samples in a row, at least, until lag has lasted.")
    lookback_seconds: float = Field(examples=[305.0])
    max_lookback_seconds: float = Field(examples=[64_800.0], description="A policy that looks back on more is refused.")
    first_verdict_within_seconds: float = Field(
        examples=[130.0], description="The first verdict comes so late at most."
    )


class CurrentVerdictOut(ApiSchema):
    """What the verdict would be now."""

    verdict: str = Field(examples=["unknown"], description="`sustained`, `calm` or `unknown`.")
    sentence: str = Field(examples=["Nothing is measured yet, so the verdict is unknown; 40 messages wait at present."])
    value: float | None = Field(default=None, description="Messages; null while unknown.")
    measured: bool = Field(description="Whether it is judged by stored samples; else one look is all there is.")
    lag: int | None = Field(default=None, description="Messages at present; null where that could not be told.")


class ValidationOut(ApiSchema):
    """What a registration would say. Nothing is stored."""

    valid: bool = Field(examples=[True], description="The registration would not be refused. There may be warnings.")
    errors: list[FieldErrorOut] = Field(default_factory=list)
    warnings: list[WarningOut] = Field(default_factory=list)
    topics: list[TopicCheckOut] = Field(default_factory=list)
    group: GroupCheckOut | None = None
    window: WindowOut | None = None
    current_verdict: CurrentVerdictOut | None = None
