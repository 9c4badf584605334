"""Bodies of requests -> what they say of a monitor, as texts, with the faults of what they say. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from lagscale.domain.policy.keys import BY_NAME
from lagscale.domain.policy.limits import unknown_key
from lagscale.domain.topics import TopicScope, in_order
from lagscale.errors import Fault
from lagscale.store.registry.monitor_spec import Draft
from services.api.schemas import MonitorIn, PolicyValue
from services.api.tenants.policy_schemas import text_of

_SCOPE_NAMES = {"topics": "topics", "pattern": "topicPattern", "exclude": "excludeTopics"}


def drafted(name: str, given: MonitorIn) -> Draft:
    """The monitor of a body, under this name."""
    pattern = None if given.topic_pattern is None else given.topic_pattern.strip()
    scope = TopicScope(tuple(dict.fromkeys(given.topics or ())), pattern, in_order(given.exclude_topics))
    texts, of_policy = policy_texts(given.policy)
    faults = scope.faults(_SCOPE_NAMES) + [Fault(f"policy.{fault.field}", fault.text) for fault in of_policy]
    return Draft(name, given.cluster, given.consumer_group.strip(), scope, texts, given.overridable, tuple(faults))


def policy_texts(values: Mapping[str, PolicyValue]) -> tuple[dict[str, str], list[Fault]]:
    """The policy keys as texts, and a fault for each that is none of ours; null means not given."""
    texts: dict[str, str] = {}
    faults: list[Fault] = []
    for name, value in values.items():
        if name not in BY_NAME:
            faults.append(unknown_key(name))
        elif value is not None and (text := text_of(value)):
            texts[name] = text
    return texts, faults
