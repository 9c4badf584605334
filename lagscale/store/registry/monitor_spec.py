"""The desired state of a monitor: what was given, completed and checked by its tenant's rules.

The API, the scaler's inline triggers and the environment's monitor all go through it; it needs no database.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lagscale.domain.policy.policy import Policy
from lagscale.domain.policy.tenant_rules import PolicyRules
from lagscale.domain.tenancy import compute_content_hash
from lagscale.domain.topics import TopicScope, lacks_single_topic
from lagscale.errors import FieldError, InvalidInput

if TYPE_CHECKING:
    # The scaler needs no SQLAlchemy.
    from lagscale.store.registry.session import Row

_LIMITATION = "partitionLimitation"


@dataclass(frozen=True, slots=True)
class MonitorDraft:
    """A monitor as a caller describes it, before its tenant's rules apply.

    Attributes:
        scope: its topics: a list, a pattern, or all of the group's.
        given: the policy keys as given, as texts.
        field_errors: faults of the description itself.
    """

    name: str
    cluster: str
    consumer_group: str
    scope: TopicScope
    given: Mapping[str, str]
    overridable: bool = False
    field_errors: tuple[FieldError, ...] = ()

    @property
    def topics(self) -> tuple[str, ...]:
        """The listed ones; without any the scraper discovers them."""
        return self.scope.topics

    @property
    def content(self) -> str:
        """The hash by which inline triggers of the same content are matched to it."""
        scope = self.scope
        return compute_content_hash(
            self.cluster, self.consumer_group, scope.topics, self.given, pattern=scope.pattern, exclude=scope.exclude
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorSpec(MonitorDraft):
    """Desired state of a monitor: a draft with its tenant's rules applied.

    Attributes:
        policy: the given keys with every default resolved.
        inherited: policy keys that the tenant's defaults add, as texts.
    """

    policy: Policy
    inherited: Mapping[str, str] = field(default_factory=dict)

    @property
    def effective_policy(self) -> dict[str, str]:
        """The policy keys in force, as texts."""
        return {**self.inherited, **self.given}

    @property
    def limitation(self) -> str:
        """`partitionLimitation` in force: it is a part of the target."""
        return self.effective_policy.get(_LIMITATION, "").strip()


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


def apply_rules(draft: MonitorDraft, rules: PolicyRules, policy: Policy) -> tuple[MonitorSpec | None, list[FieldError]]:
    """The monitor with its tenant's defaults, and what the rules forbid of it, by policy key.

    `policy` is that of the draft by these rules.

    Returns:
        None in place of the monitor where `partitionLimitation` cannot apply to its topics.
    """
    inherited = rules.inherited(draft.given)
    field_errors = _check_limitation(draft, inherited)
    spec = None
    if not field_errors:
        described = (draft.name, draft.cluster, draft.consumer_group, draft.scope, draft.given, draft.overridable)
        spec = MonitorSpec(*described, policy=policy, inherited=inherited)
    return spec, field_errors + rules.field_errors(policy, draft.given)


def _check_limitation(draft: MonitorDraft, inherited: dict[str, str]) -> list[FieldError]:
    if not (inherited | dict(draft.given)).get(_LIMITATION) or not lacks_single_topic(draft.scope):
        return []
    source = "" if draft.given.get(_LIMITATION) else "is set by the tenant's defaults and "
    return [FieldError(_LIMITATION, f"{source}needs exactly one topic")]


def resolve_draft(draft: MonitorDraft, tenant: Row, tick_seconds: float) -> tuple[MonitorSpec | None, list[FieldError]]:
    """The monitor by the rules of its tenant's row, and what they forbid of it; None where it has no valid policy."""
    rules = read_rules(tenant)
    spec = None
    try:
        policy = rules.policy(
            draft.given, tick_seconds=tick_seconds, minimum_interval=int(tenant["min_sampling_seconds"])
        )
    except InvalidInput as error:
        field_errors = _check_limitation(draft, rules.inherited(draft.given)) + list(error.field_errors)
    else:
        spec, field_errors = apply_rules(draft, rules, policy)
    return spec, [FieldError(f"policy.{field_error.field}", field_error.text) for field_error in field_errors]


def build_spec(draft: MonitorDraft, tenant: Row, tick_seconds: float) -> MonitorSpec:
    """The monitor by its tenant's rules.

    Raises:
        InvalidInput: with all faults of the description and of the rules at once.
    """
    spec, forbidden = resolve_draft(draft, tenant, tick_seconds)
    field_errors = [*draft.field_errors, *forbidden]
    if field_errors or spec is None:
        raise InvalidInput(field_errors)
    return spec


def to_columns(spec: MonitorSpec) -> dict[str, Any]:
    """The columns of a monitor's row for its spec, except its name and its cluster's id."""
    return {
        "consumer_group": spec.consumer_group,
        # A list, or a pattern, or neither: then all topics of the group.
        "topics": list(spec.topics) or None,
        "topic_pattern": spec.scope.pattern,
        "exclude_topics": list(spec.scope.exclude),
        "isolation_level": spec.policy.isolation_level.value,
        "partition_limitation": spec.limitation,
        "policy": spec.effective_policy,
        "inherited": sorted(spec.inherited),
        "sampling_ms": spec.policy.sampling_ms,
        "stale_after_ms": spec.policy.stale_after_ms,
        "overridable": spec.overridable,
        "content_hash": spec.content,
    }
