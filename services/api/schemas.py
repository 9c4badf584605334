"""Bodies of requests and answers of the registry, as the OpenAPI document shows them. camelCase, nothing extra."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from lagscale.domain.policy.keys import KEYS_BY_NAME, describe_keys
from lagscale.domain.tenancy import NAME_PATTERN, is_name
from lagscale.domain.topics import MAX_EXCLUDED
from lagscale.settings import split_address
from lagscale.store.registry.api_keys import TENANT_ADMIN, TENANT_VIEWER

_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
Item = TypeVar("Item")


def _check_name(text: str) -> str:
    if not is_name(text):
        raise ValueError("must be 1 to 63 of a-z, 0-9 and -, with no - at either end")
    return text


def _check_line(text: str) -> str:
    # Also keeps out what PostgreSQL cannot store: NUL and halves of surrogate pairs.
    if not text.isprintable():
        raise ValueError("must be printable characters on one line")
    return text


def _check_topic(text: str) -> str:
    if _TOPIC_NAME.fullmatch(text) is None or text in {".", ".."}:
        raise ValueError("must be a topic's name: 1 to 249 of letters, digits, `.`, `_` and `-`")
    return text


def _check_server(text: str) -> str:
    host, _port = split_address(text)
    if not host or not text.isascii() or not text.isprintable() or " " in text.strip():
        raise ValueError("must read like kafka.example:9092")
    return text.strip()


def _check_scalar(value: Any) -> Any:
    if value is not None and not isinstance(value, str | int | float | bool):
        raise ValueError("must be a text, a number, true or false")
    return value


def split_list(value: Any) -> Any:
    """A list where one text stands, by commas or alone."""
    return [part for part in value.split(",") if part.strip()] if isinstance(value, str) else value


Name = Annotated[
    str,
    AfterValidator(_check_name),
    WithJsonSchema({"type": "string", "pattern": f"^{NAME_PATTERN.pattern}$", "maxLength": 63}),
]
Line = Annotated[str, Field(max_length=255), AfterValidator(_check_line)]
Topic = Annotated[str, AfterValidator(_check_topic)]
Server = Annotated[str, AfterValidator(_check_server)]
PolicyValue = str | int | float | bool | None
# One fault for a value, where a union would tell one for each of its kinds.
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
    """What all bodies share."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", hide_input_in_errors=True
    )


class Listing(ApiSchema, Generic[Item]):
    """One page; `next` is the `cursor` of the following one, null at the end."""

    items: list[Item]
    next: str | None = None


class StateOut(ApiSchema):
    """What the scraper last met: `ok`, or a named error, and since when."""

    code: str = Field(examples=["authentication_failed"])
    message: str = Field(examples=["The broker refuses user and password; correct the cluster's secrets."])
    since: datetime
    seen_at: datetime


class WarningOut(ApiSchema):
    """Something that is no fault of the request, and may still keep it from working."""

    field: str = Field(examples=["bootstrapServers.0"])
    text: str = Field(examples=["kafka-0.kafka:9092: Nobody listens on this port, or the network does not lead there."])


class MonitorIn(ApiSchema):
    """A monitor as it shall be: whose lag, and the policy by which it is judged."""

    name: Name | None = Field(default=None, examples=["ingest-logs"], description="KEDA's `serviceType`.")
    cluster: Name = Field(examples=["main"])
    consumer_group: Annotated[Line, Field(min_length=1)] = Field(examples=["lakerunner.ingest.logs"])
    topics: Annotated[list[Topic], BeforeValidator(split_list), Field(min_length=1)] | None = Field(
        default=None,
        examples=[["lakerunner.objstore.ingest.logs"]],
        description="Left out, with `topicPattern` too: all topics on which the group has commits.",
    )
    topic_pattern: Line | None = Field(
        default=None, description="In place of `topics`: a regular expression of RE2 for the whole name of a topic."
    )
    exclude_topics: Annotated[list[Line], BeforeValidator(split_list)] = Field(
        default_factory=list,
        max_length=MAX_EXCLUDED,
        description="Names or patterns that are left out of the pattern's topics, or of the group's.",
    )
    policy: PolicyKeys = Field(default_factory=dict)
    overridable: bool = Field(default=False, description="May ScaledObjects give policy keys beside `serviceType`?")


class RegistrantOut(ApiSchema):
    """The ScaledObject by whose metadata a monitor was registered."""

    instance: str = Field(examples=["default"], description="The KEDA instance.")
    namespace: str = Field(examples=["shop-production"])
    scaled_object: str = Field(examples=["ingest-logs"])


class MonitorOut(ApiSchema):
    """A monitor; `policy` holds the keys as given, the verdict shows all of them resolved."""

    name: str = Field(examples=["ingest-logs"])
    cluster: str = Field(examples=["main"])
    consumer_group: str = Field(examples=["lakerunner.ingest.logs"])
    topics: list[str] | None = Field(
        examples=[["lakerunner.objstore.ingest.logs"]], description="Null: they are looked up."
    )
    topic_pattern: str | None = None
    exclude_topics: list[str] = Field(default_factory=list)
    measured_topics: list[str] = Field(
        examples=[["lakerunner.objstore.ingest.logs"]], description="What is measured at present."
    )
    scope: StateOut | None = Field(
        default=None,
        description="How looking up the topics went; null for a list, and until the scraper has done it.",
    )
    policy: dict[str, str] = Field(examples=[{"lagThreshold": "500", "sustainSeconds": "120"}])
    overridable: bool
    inherited_policy: dict[str, str] = Field(
        default_factory=dict,
        examples=[{"holdSeconds": "600"}],
        description="Keys that the tenant's `policyDefaults` add, as they are in force.",
    )
    auto_registered: bool = Field(description="Created by a ScaledObject's metadata, removed when nobody asks.")
    registered_by: RegistrantOut | None = Field(
        default=None, description="Who asked first for what was registered that way; null where nobody knows."
    )
    last_asked_at: datetime | None = Field(
        default=None, description="When a scaler last noted that KEDA asked, to some minutes."
    )
    deleted_at: datetime | None = Field(default=None, description="Null while it is there.")
    created_at: datetime
    updated_at: datetime
    version: int = Field(examples=[1])
    warnings: list[WarningOut] = Field(default_factory=list, description="Of its validation when it is registered.")


class BindingIn(ApiSchema):
    """Which KEDA instance and Kubernetes namespace asks for this tenant."""

    instance: Annotated[Line, Field(min_length=1)] = Field(
        default="default", description="The KEDA instance: its certificate's name, or `default` without one."
    )
    namespace: Annotated[Line, Field(min_length=1)] = Field(
        examples=["shop-production"], description="A Kubernetes namespace, or `*` for all of the instance."
    )


class BindingOut(BindingIn):
    """A binding."""

    created_at: datetime


class KeyIn(ApiSchema):
    """An API key to be made."""

    name: Annotated[Line, Field(min_length=1)] = Field(examples=["ci"])
    role: str = Field(examples=[TENANT_ADMIN], description=f"`{TENANT_ADMIN}` or `{TENANT_VIEWER}`.")
    expires_at: AwareDatetime | None = Field(default=None, description="Without it the key does not expire.")


class PlatformKeyIn(ApiSchema):
    """An API key of the platform's administrators to be made."""

    name: Annotated[Line, Field(min_length=1)] = Field(examples=["platform-team"])
    expires_at: AwareDatetime | None = Field(default=None, description="Without it the key does not expire.")


class KeyOut(ApiSchema):
    """An API key, without its secret."""

    prefix: str = Field(examples=["3f9a1c5e7b20"], description="Names the key in URLs.")
    name: str = Field(examples=["ci"])
    role: str = Field(examples=[TENANT_ADMIN])
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    replaced_by: str | None = Field(default=None, description="The prefix of its successor, once it was rotated.")


class NewKeyOut(KeyOut):
    """A fresh API key. It is shown this once."""

    key: str = Field(examples=["lsk_3f9a1c5e7b20_..."])
