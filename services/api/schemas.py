"""What the schemas of all routes share: names and other fields, pages, states, warnings. camelCase, no extra fields."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Generic, Self, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from lagscale.clock import to_datetime
from lagscale.domain.policy.keys import KEYS_BY_NAME, describe_keys
from lagscale.domain.tenancy import MAX_GROUP_BYTES, NAME_PATTERN, find_group_error, is_name
from lagscale.settings import split_address
from lagscale.store.registry.paging import Page
from lagscale.store.registry.session import Row

_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
Item = TypeVar("Item")


def _check_name(text: str) -> str:
    if not is_name(text):
        raise ValueError("must be 1 to 63 characters of a-z, 0-9 and -, without - at either end")
    return text


def _refuse_number(value: object) -> object:
    if re.fullmatch(r"\s*[+-]?[\d.]+\s*", str(value)):
        raise ValueError("must be a time such as 2026-01-05T10:00:00Z")
    return value


def _check_line(text: str) -> str:
    # Also refuses what PostgreSQL cannot store: NUL and lone surrogates.
    if not text.isprintable():
        raise ValueError("must be printable characters on one line")
    return text


def _check_group(text: str) -> str:
    if (error := find_group_error(text)) is not None:
        raise ValueError(error)
    return text


def _check_topic(text: str) -> str:
    if _TOPIC_NAME.fullmatch(text) is None or text in {".", ".."}:
        raise ValueError("must be a topic name: 1 to 249 letters, digits, `.`, `_` and `-`")
    return text


def _check_server(text: str) -> str:
    try:
        host, _port = split_address(text)
    except ValueError:
        raise ValueError("must have a port, as in kafka-0.kafka:9092") from None
    if not host or not text.isascii() or not text.isprintable() or " " in text.strip():
        raise ValueError("must have the form kafka-0.kafka:9092")
    return text.strip()


def _check_scalar(value: Any) -> Any:
    if value is not None and not isinstance(value, str | int | float | bool):
        raise ValueError("must be a string, a number, true or false")
    return value


def split_list(value: Any) -> Any:
    """A list of a comma-separated string; other values as they are."""
    return [part for part in value.split(",") if part.strip()] if isinstance(value, str) else value


Name = Annotated[
    str,
    AfterValidator(_check_name),
    WithJsonSchema({"type": "string", "pattern": f"^{NAME_PATTERN.pattern}$", "maxLength": 63}),
]
Line = Annotated[str, Field(max_length=255), AfterValidator(_check_line)]
#: A time in a query; a bare number is no time, though pydantic would read it as seconds since 1970.
QueryTime = Annotated[AwareDatetime, BeforeValidator(_refuse_number)]
Group = Annotated[
    str, Field(min_length=1, json_schema_extra={"maxLength": MAX_GROUP_BYTES}), AfterValidator(_check_group)
]
Topic = Annotated[str, AfterValidator(_check_topic)]
Server = Annotated[str, AfterValidator(_check_server)]
PolicyValue = str | int | float | bool | None
# One error per value, where a union would report one for each of its types.
Scalar = Annotated[
    Any,
    AfterValidator(_check_scalar),
    WithJsonSchema({"anyOf": [{"type": kind} for kind in ("string", "number", "boolean", "null")]}),
]
#: The keys of a policy in requests, described by the one table of keys.
PolicyKeys = Annotated[
    dict[str, Scalar],
    Field(
        description=f"Policy keys. {describe_keys()}.",
        examples=[{name: int(KEYS_BY_NAME[name].default_text) for name in ("lagThreshold", "sustainSeconds")}],
    ),
]


class ApiSchema(BaseModel):
    """Base of all schemas."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", hide_input_in_errors=True
    )

    @classmethod
    def from_row(cls, row: Row, **derived: Any) -> Self:
        """The body of a row: each field is the column of its name, unless it is given as derived."""
        return cls.model_validate({name: row[name] for name in cls.model_fields if name not in derived} | derived)


class Listing(ApiSchema, Generic[Item]):
    """One page; `next` is the `cursor` of the next page, null at the end."""

    items: list[Item]
    next: str | None = None


class StateOut(ApiSchema):
    """State of a cluster, a target or a topic discovery as the scraper last found it: `ok` or a named error."""

    code: str = Field(examples=["authentication_failed"])
    message: str = Field(examples=["The broker refuses user and password; correct the cluster's secrets."])
    since: datetime
    last_checked_at: datetime


class WarningOut(ApiSchema):
    """A problem outside the request that may keep the object from working."""

    field: str = Field(examples=["bootstrapServers.0"])
    text: str = Field(examples=["kafka-0.kafka:9092: Connection refused: nothing listens on this port."])


class FieldErrorOut(ApiSchema):
    """An invalid field of the request."""

    field: str = Field(examples=["policy.lagThreshold"])
    text: str = Field(examples=["must be at least 1, not 0"])


def serialize_state(row: Row, prefix: str) -> StateOut | None:
    """The state in the columns of this prefix; None before the scraper has written one."""
    if row[f"{prefix}code"] is None:
        return None
    return StateOut(
        code=row[f"{prefix}code"],
        message=row[f"{prefix}message"],
        since=row[f"{prefix}since"],
        last_checked_at=row[f"{prefix}seen_at"],
    )


def serialize_page(page: Page, serialize_row: Callable[[Row], Item]) -> Listing[Item]:
    """A page of rows as the body of a listing."""
    return Listing(items=[serialize_row(row) for row in page.rows], next=page.after)


def format_time(at_ms: int) -> str:
    """A time as it appears in sentences: UTC, in milliseconds."""
    return to_datetime(at_ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def to_optional_datetime(milliseconds: int | None) -> datetime | None:
    """The UTC time of milliseconds since 1970; None for None."""
    return None if milliseconds is None else to_datetime(milliseconds)
