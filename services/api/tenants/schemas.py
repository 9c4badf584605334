"""Request and response bodies of tenants, and of their rules for policies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from itertools import islice
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from lagscale.domain.policy.tenant_rules import PolicyRules
from lagscale.domain.quotas import Quota
from lagscale.errors import InvalidInput
from lagscale.store.registry.monitors import PolicyViolation
from lagscale.store.registry.session import Row
from services.api.schemas import ApiSchema, Line, Name, PolicyValue, Scalar
from services.api.tenants.quotas import quota_field

_MAX_LENGTH = 255
#: Further warnings are listed by a route of their own.
_MAX_WARNINGS = 100


def format_policy_value(value: Any) -> str:
    """A value of a policy as a string; numbers without an exponent, which policies do not support."""
    if isinstance(value, bool):
        return str(value).lower()
    return format(Decimal(repr(value)).normalize(), "f") if isinstance(value, float) else str(value).strip()


def _check_policy_text(value: PolicyValue) -> str | None:
    if value is None:
        return None
    text = format_policy_value(value)
    if len(text) > _MAX_LENGTH or not text.isprintable():
        raise ValueError(f"must be at most {_MAX_LENGTH} printable characters")
    return text


#: Stored as a string.
PolicyText = Annotated[Scalar, AfterValidator(_check_policy_text)]


class PolicyLimit(ApiSchema):
    """Limit of one policy key: bounds, a choice, or one value."""

    min: PolicyText = Field(default=None, examples=[60], description="Bound of a number, inclusive.")
    max: PolicyText = Field(default=None, examples=[3600], description="Bound of a number, inclusive.")
    allowed: list[PolicyText] | None = Field(default=None, max_length=64, examples=[["partition"]])
    fixed: PolicyText = Field(
        default=None, examples=["read_committed"], description="The only value; also in force where none is given."
    )


class PolicyWarning(ApiSchema):
    """A monitor that violates its tenant's rules: it keeps working, and its next change is refused."""

    monitor: str = Field(examples=["ingest-logs"])
    field: str = Field(examples=["policy.sustainSeconds"])
    text: str = Field(examples=["is 30; this tenant allows at least 60: set such a value, or ask ..."])


class TenantIn(ApiSchema):
    """Desired state of a tenant."""

    name: Name | None = Field(default=None, examples=["shop"], description="Optional where the URL names it.")
    display_name: Line = Field(default="", examples=["The shop's team"])
    auto_register: bool = Field(
        default=False, description="Whether ScaledObjects may register monitors by metadata without `serviceType`."
    )
    min_sampling_seconds: int = Field(default=1, ge=1, le=3600, description="Minimum of `samplingInterval`, seconds.")
    max_monitors: int = quota_field(Quota.MONITORS)
    max_clusters: int = quota_field(Quota.CLUSTERS)
    max_patterns: int = quota_field(Quota.PATTERNS)
    max_partitions: int = quota_field(Quota.PARTITIONS)
    calls_per_second: int = quota_field(Quota.CALLS)
    requests_per_second: int = quota_field(Quota.REQUESTS)
    max_auto_monitors: int = Field(
        default=1000, ge=0, le=1_000_000, description="Maximum number of monitors that ScaledObjects registered."
    )
    auto_expiry_days: int = Field(
        default=7, ge=1, le=365, description="Days without a request of KEDA after which such a monitor is deleted."
    )
    policy_defaults: dict[str, PolicyText] = Field(
        default_factory=dict,
        examples=[{"sustainSeconds": 300}],
        description="In force where a policy does not set the key.",
    )
    policy_limits: dict[str, PolicyLimit] = Field(
        default_factory=dict,
        examples=[{"sustainSeconds": {"min": 60, "max": 3600}}],
        description="Limit of each policy key.",
    )


class TenantOut(TenantIn):
    """A tenant."""

    name: Name = Field(examples=["shop"])
    created_at: datetime
    version: int = Field(examples=[1])
    warnings: list[PolicyWarning] = Field(
        default_factory=list,
        description="Of a `PUT` that changes the rules: the first 100 violations by monitors.",
    )


def build_tenant_columns(given: TenantIn, tick_seconds: float) -> dict[str, Any]:
    """The columns of a tenant, with its rules for policies validated and in canonical form.

    Raises:
        InvalidInput: the rules are invalid, or the defaults are outside the limits.
    """
    defaults = {name: text for name, text in given.policy_defaults.items() if text}
    limits = {name: limit.model_dump(exclude_none=True) for name, limit in given.policy_limits.items()}
    rules = PolicyRules.read(defaults, limits)
    field_errors = rules.own_faults(tick_seconds=tick_seconds, minimum_interval=given.min_sampling_seconds)
    if field_errors:
        raise InvalidInput(field_errors)
    return given.model_dump(exclude={"name"}) | {"policy_defaults": defaults, "policy_limits": limits}


def serialize_tenant(row: Row, violations: Iterable[PolicyViolation] = ()) -> TenantOut:
    """A tenant's row as a body, with warnings for monitors that violate its rules."""
    return TenantOut.from_row(row, warnings=list(islice(serialize_policy_warnings(violations), _MAX_WARNINGS)))


def serialize_policy_warnings(violations: Iterable[PolicyViolation]) -> Iterator[PolicyWarning]:
    """A warning for each error of each violation."""
    for violation in violations:
        for field_error in violation.field_errors:
            yield PolicyWarning(monitor=violation.name, field=field_error.field, text=field_error.text)
