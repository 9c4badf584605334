"""A tenant's rules for policies, as bodies have them."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

_MAX_LENGTH = 255


def format_policy_value(value: Any) -> str:
    """A value of a policy as its text; numbers never in the exponent's form, which the policy's language lacks."""
    if isinstance(value, bool):
        return str(value).lower()
    return format(Decimal(repr(value)).normalize(), "f") if isinstance(value, float) else str(value).strip()


def _check_policy_text(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str | int | float | bool):
        raise ValueError("must be a text, a number, true or false")
    text = format_policy_value(value)
    if len(text) > _MAX_LENGTH or not text.isprintable():
        raise ValueError(f"must be at most {_MAX_LENGTH} printable characters")
    return text


_JSON_TYPES = [{"type": json_type} for json_type in ("string", "number", "boolean", "null")]
# One fault for a value, where a union would tell one for each of its kinds; kept as a text.
PolicyText = Annotated[Any, AfterValidator(_check_policy_text), WithJsonSchema({"anyOf": _JSON_TYPES})]


class PolicyLimit(BaseModel):
    """What is allowed of one key: bounds, or a choice, or one value."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", hide_input_in_errors=True
    )

    min: PolicyText = Field(default=None, examples=[60], description="Of a number, included.")
    max: PolicyText = Field(default=None, examples=[3600], description="Of a number, included.")
    allowed: list[PolicyText] | None = Field(default=None, max_length=64, examples=[["partition"]])
    fixed: PolicyText = Field(
        default=None, examples=["read_committed"], description="The one value; it holds where none is given, too."
    )


class PolicyWarning(BaseModel):
    """A monitor that its tenant's rules forbid: it goes on as it is, and its next change is refused."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    monitor: str = Field(examples=["ingest-logs"])
    field: str = Field(examples=["policy.sustainSeconds"])
    text: str = Field(examples=["is 30; this tenant allows at least 60: set such a value, or ask ..."])
