"""A monitor as it shall be: what was given, completed and judged by its tenant's rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lagscale.domain.policy.policy import Policy
from lagscale.domain.policy.tenant_rules import PolicyRules
from lagscale.domain.tenancy import compute_content_hash
from lagscale.domain.topics import TopicScope, lacks_single_topic
from lagscale.errors import FieldError, InvalidInput
from lagscale.store.registry.session import Row


@dataclass(frozen=True, slots=True)
class MonitorDraft:
    """A monitor as somebody describes it, before its tenant's rules are asked.

    Attributes:
        given: the policy keys as given, as texts.
        field_errors: what is wrong with the description itself.
    """

    name: str
    cluster: str
    consumer_group: str
    scope: TopicScope
    given: Mapping[str, str]
    overridable: bool = False
    field_errors: tuple[FieldError, ...] = ()

    @property
    def content(self) -> str:
        """The hash of what it is, see `MonitorSpec.content`."""
        scope = self.scope
        return compute_content_hash(
            self.cluster, self.consumer_group, scope.topics, self.given, pattern=scope.pattern, exclude=scope.exclude
        )


@dataclass(frozen=True, slots=True)
class MonitorSpec:
    """A monitor as it shall be.

    Attributes:
        topics: listed ones; with none the scraper looks them up.
        given: the policy keys as given, as texts.
        policy: the same with every default resolved.
        pattern, exclude: see `TopicScope`.
        inherited: policy keys that the tenant's defaults add, as texts.
    """

    name: str
    cluster: str
    consumer_group: str
    topics: tuple[str, ...]
    given: Mapping[str, str]
    policy: Policy
    overridable: bool = False
    pattern: str | None = None
    exclude: tuple[str, ...] = ()
    inherited: Mapping[str, str] = field(default_factory=dict)

    @property
    def effective_policy(self) -> dict[str, str]:
        """The policy keys in force, as texts."""
        return {**self.inherited, **self.given}

    @property
    def scope(self) -> TopicScope:
        """Which topics it means."""
        return TopicScope(self.topics, self.pattern, self.exclude)

    @property
    def content(self) -> str:
        """The hash by which inline triggers of the same content find it."""
        return compute_content_hash(
            self.cluster, self.consumer_group, self.topics, self.given, pattern=self.pattern, exclude=self.exclude
        )

    @property
    def limitation(self) -> str:
        """`partitionLimitation` in force: it is a part of the target."""
        return self.effective_policy.get("partitionLimitation", "").strip()


def read_rules(tenant: Row) -> PolicyRules:
    """The rules of a tenant's row; they were checked when they were written."""
    return PolicyRules.read(tenant["policy_defaults"], tenant["policy_limits"])


def read_given(row: Row) -> dict[str, str]:
    """The policy keys of a monitor's row as they were given."""
    inherited = set(row["inherited"])
    return {str(name): str(text) for name, text in row["policy"].items() if name not in inherited}


def read_draft(row: Row) -> MonitorDraft:
    """What a monitor's row describes; the row has its cluster's name."""
    scope = TopicScope(tuple(row["topics"] or ()), row["topic_pattern"], tuple(row["exclude_topics"]))
    return MonitorDraft(row["name"], row["cluster"], row["consumer_group"], scope, read_given(row), row["overridable"])


def resolve_draft(draft: MonitorDraft, tenant: Row, tick_seconds: float) -> tuple[MonitorSpec | None, list[FieldError]]:
    """The monitor by its tenant's rules, and what they forbid of it; None where no policy can be made of it."""
    rules = read_rules(tenant)
    inherited = rules.inherited(draft.given)
    field_errors: list[FieldError] = []
    if (inherited | dict(draft.given)).get("partitionLimitation") and lacks_single_topic(draft.scope):
        field_errors.append(FieldError("policy.partitionLimitation", "needs exactly one topic"))
    try:
        least = int(tenant["min_sampling_seconds"])
        policy = rules.policy(draft.given, tick_seconds=tick_seconds, minimum_interval=least)
    except InvalidInput as wrong:
        return None, field_errors + [
            FieldError(f"policy.{field_error.field}", field_error.text) for field_error in wrong.field_errors
        ]
    if field_errors:
        return None, field_errors
    spec = MonitorSpec(
        draft.name, draft.cluster, draft.consumer_group, draft.scope.topics, draft.given, policy, draft.overridable,
        draft.scope.pattern, draft.scope.exclude, inherited,
    )  # fmt: skip
    return spec, [
        FieldError(f"policy.{field_error.field}", field_error.text)
        for field_error in rules.field_errors(policy, draft.given)
    ]


def build_spec(draft: MonitorDraft, tenant: Row, tick_seconds: float) -> MonitorSpec:
    """The monitor by its tenant's rules.

    Raises:
        InvalidInput: with every fault of the description and of the rules at once.
    """
    spec, forbidden = resolve_draft(draft, tenant, tick_seconds)
    field_errors = [*draft.field_errors, *forbidden]
    if field_errors or spec is None:
        raise InvalidInput(field_errors)
    return spec


def to_columns(spec: MonitorSpec) -> dict[str, Any]:
    """The columns of a monitor's row that say what it is, but for its name and its cluster's number."""
    return {
        "consumer_group": spec.consumer_group,
        # A list, or a pattern, or neither: then the group's topics are meant.
        "topics": list(spec.topics) or None,
        "topic_pattern": spec.pattern,
        "exclude_topics": list(spec.exclude),
        "isolation_level": spec.policy.isolation_level.value,
        "partition_limitation": spec.limitation,
        "policy": spec.effective_policy,
        "inherited": sorted(spec.inherited),
        "sampling_ms": spec.policy.sampling_ms,
        "stale_after_ms": spec.policy.stale_after_ms,
        "overridable": spec.overridable,
        "content_hash": spec.content,
    }
