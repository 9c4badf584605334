"""Bodies of requests -> what they say of a monitor, as texts, with the faults of what they say. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from lagscale.domain.policy.keys import KEYS_BY_NAME
from lagscale.domain.policy.tenant_rules import build_unknown_key_fault
from lagscale.domain.topics import TopicScope, normalize_names
from lagscale.errors import FieldError
from lagscale.store.registry.monitor_spec import MonitorDraft
from services.api.schemas import MonitorIn, PolicyValue
from services.api.tenants.policy_schemas import format_policy_value

_SCOPE_NAMES = {"topics": "topics", "pattern": "topicPattern", "exclude": "excludeTopics"}


def parse_draft(name: str, given: MonitorIn) -> MonitorDraft:
    """The monitor of a body, under this name."""
    pattern = None if given.topic_pattern is None else given.topic_pattern.strip()
    scope = TopicScope(tuple(dict.fromkeys(given.topics or ())), pattern, normalize_names(given.exclude_topics))
    texts, of_policy = format_policy(given.policy)
    field_errors = scope.field_errors(_SCOPE_NAMES) + [
        FieldError(f"policy.{field_error.field}", field_error.text) for field_error in of_policy
    ]
    return MonitorDraft(
        name, given.cluster, given.consumer_group.strip(), scope, texts, given.overridable, tuple(field_errors)
    )


def format_policy(values: Mapping[str, PolicyValue]) -> tuple[dict[str, str], list[FieldError]]:
    """The policy keys as texts, and a fault for each that is none of ours; null means not given."""
    texts: dict[str, str] = {}
    field_errors: list[FieldError] = []
    for name, value in values.items():
        if name not in KEYS_BY_NAME:
            field_errors.append(build_unknown_key_fault(name))
        elif value is not None and (text := format_policy_value(value)):
            texts[name] = text
    return texts, field_errors
