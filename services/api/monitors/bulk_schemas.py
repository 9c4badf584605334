"""Bodies of the many changes of monitors that are made together, or not at all."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from services.api.schemas import ApiSchema, MonitorIn, Name

#: So many changes of one request are made within a few seconds.
MAX_CHANGES = 1000


class ChangeIn(ApiSchema):
    """One change: a monitor as it shall be, or the name of one that shall be gone."""

    put: MonitorIn | None = Field(
        default=None, description="As the body of `PUT`; its `name` must be given. Exactly one of `put` and `delete`."
    )
    delete: Name | None = Field(
        default=None, examples=["ingest-logs"], description="One that is not there is no fault."
    )
    version: int | None = Field(
        default=None,
        ge=0,
        le=2**31 - 1,
        examples=[3],
        description="The version that was read, as `If-Match` has it; 0: the monitor is not there yet.",
    )

    @model_validator(mode="after")
    def _check_put_or_delete(self) -> Self:
        if (self.put is None) == (self.delete is None):
            raise ValueError("must have either put or delete")
        return self


class ChangesIn(ApiSchema):
    """Changes that are made together, or not at all. A name stands in one of them at most."""

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
    """A field before and after; null where there was or is none."""

    before: Any = Field(examples=["500"])
    after: Any = Field(examples=["700"])


class ChangeOut(ApiSchema):
    """What became of one change, or would become of it."""

    name: str = Field(examples=["ingest-logs"])
    outcome: Literal["created", "changed", "unchanged", "deleted"] = Field(examples=["changed"])
    version: int | None = Field(
        examples=[4], description="Of the monitor now; null where there is none, and of a dry run as it was."
    )
    differences: dict[str, FieldDifference] = Field(
        default_factory=dict,
        examples=[{"policy.lagThreshold": {"before": "500", "after": "700"}}],
        description="What differs, by the fields of the monitor; of a deleted one nothing is listed.",
    )


class ChangesOut(ApiSchema):
    """What became of the changes, in their order."""

    dry_run: bool = Field(description="Nothing was changed: this is what would be.")
    created: int = Field(examples=[1])
    changed: int = Field(examples=[0])
    unchanged: int = Field(examples=[0])
    deleted: int = Field(examples=[1])
    items: list[ChangeOut]
