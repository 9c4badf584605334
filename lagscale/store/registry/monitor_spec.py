"""A monitor as it shall be: what was given, completed and judged by its tenant's rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lagscale.domain.policy.policy import Policy
from lagscale.domain.policy.tenant_rules import PolicyRules
from lagscale.domain.tenancy import content_hash
from lagscale.domain.topics import TopicScope, limitation_needs_one
from lagscale.errors import Fault, InvalidInput
from lagscale.store.registry.session import Row


@dataclass(frozen=True, slots=True)
class Draft:
    """A monitor as somebody describes it, before its tenant's rules are asked.

    Attributes:
        given: the policy keys as given, as texts.
        faults: what is wrong with the description itself.
    """

    name: str
    cluster: str
    consumer_group: str
    scope: TopicScope
    given: Mapping[str, str]
    overridable: bool = False
    faults: tuple[Fault, ...] = ()

    @property
    def content(self) -> str:
        """The hash of what it is, see `MonitorSpec.content`."""
        scope = self.scope
        return content_hash(
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
    def held(self) -> dict[str, str]:
        """The policy keys in force, as texts."""
        return {**self.inherited, **self.given}

    @property
    def scope(self) -> TopicScope:
        """Which topics it means."""
        return TopicScope(self.topics, self.pattern, self.exclude)

    @property
    def content(self) -> str:
        """The hash by which inline triggers of the same content find it."""
        return content_hash(
            self.cluster, self.consumer_group, self.topics, self.given, pattern=self.pattern, exclude=self.exclude
        )

    @property
    def limitation(self) -> str:
        """`partitionLimitation` in force: it is a part of the target."""
        return self.held.get("partitionLimitation", "").strip()


def rules_of(tenant: Row) -> PolicyRules:
    """The rules of a tenant's row; they were checked when they were written."""
    return PolicyRules.read(tenant["policy_defaults"], tenant["policy_limits"])


def given_of(row: Row) -> dict[str, str]:
    """The policy keys of a monitor's row as they were given."""
    inherited = set(row["inherited"])
    return {str(name): str(text) for name, text in row["policy"].items() if name not in inherited}


def draft_of(row: Row) -> Draft:
    """What a monitor's row describes; the row has its cluster's name."""
    scope = TopicScope(tuple(row["topics"] or ()), row["topic_pattern"], tuple(row["exclude_topics"]))
    return Draft(row["name"], row["cluster"], row["consumer_group"], scope, given_of(row), row["overridable"])


def judged(draft: Draft, tenant: Row, tick_seconds: float) -> tuple[MonitorSpec | None, list[Fault]]:
    """The monitor by its tenant's rules, and what they forbid of it; None where no policy can be made of it."""
    rules = rules_of(tenant)
    inherited = rules.inherited(draft.given)
    faults: list[Fault] = []
    if (inherited | dict(draft.given)).get("partitionLimitation") and limitation_needs_one(draft.scope):
        faults.append(Fault("policy.partitionLimitation", "needs exactly one topic"))
    try:
        least = int(tenant["min_sampling_seconds"])
        policy = rules.policy(draft.given, tick_seconds=tick_seconds, minimum_interval=least)
    except InvalidInput as wrong:
        return None, faults + [Fault(f"policy.{fault.field}", fault.text) for fault in wrong.faults]
    if faults:
        return None, faults
    spec = MonitorSpec(
        draft.name, draft.cluster, draft.consumer_group, draft.scope.topics, draft.given, policy, draft.overridable,
        draft.scope.pattern, draft.scope.exclude, inherited,
    )  # fmt: skip
    return spec, [Fault(f"policy.{fault.field}", fault.text) for fault in rules.faults(policy, draft.given)]


def built(draft: Draft, tenant: Row, tick_seconds: float) -> MonitorSpec:
    """The monitor by its tenant's rules.

    Raises:
        InvalidInput: with every fault of the description and of the rules at once.
    """
    spec, forbidden = judged(draft, tenant, tick_seconds)
    faults = [*draft.faults, *forbidden]
    if faults or spec is None:
        raise InvalidInput(faults)
    return spec


def columns(spec: MonitorSpec) -> dict[str, Any]:
    """The columns of a monitor's row that say what it is, but for its name and its cluster's number."""
    return {
        "consumer_group": spec.consumer_group,
        # A list, or a pattern, or neither: then the group's topics are meant.
        "topics": list(spec.topics) or None,
        "topic_pattern": spec.pattern,
        "exclude_topics": list(spec.exclude),
        "isolation_level": spec.policy.isolation_level.value,
        "partition_limitation": spec.limitation,
        "policy": spec.held,
        "inherited": sorted(spec.inherited),
        "sampling_ms": spec.policy.sampling_ms,
        "stale_after_ms": spec.policy.stale_after_ms,
        "overridable": spec.overridable,
        "content_hash": spec.content,
    }
