"""Bodies of monitors -> drafts of the registry, with their errors; and what a stored monitor is judged by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lagscale.domain.policy.keys import KEYS_BY_NAME
from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.policy.policy import Policy
from lagscale.domain.policy.tenant_rules import build_unknown_key_fault
from lagscale.domain.state_codes import StateCode
from lagscale.domain.topics import TopicScope, normalize_names
from lagscale.errors import FieldError, InvalidInput
from lagscale.store.registry import monitors
from lagscale.store.registry.monitor_spec import MonitorDraft
from lagscale.store.registry.session import Row, TenantSession
from services.api.monitors.schemas import MonitorIn
from services.api.schemas import PolicyValue
from services.api.tenants.schemas import format_policy_value

_SCOPE_NAMES = {"topics": "topics", "pattern": "topicPattern", "exclude": "excludeTopics"}


def parse_draft(name: str, given: MonitorIn) -> MonitorDraft:
    """The draft of a body, under this name; its errors are a part of it."""
    pattern = None if given.topic_pattern is None else given.topic_pattern.strip()
    scope = TopicScope(tuple(dict.fromkeys(given.topics or ())), pattern, normalize_names(given.exclude_topics))
    texts, policy_errors = format_policy(given.policy)
    field_errors = scope.field_errors(_SCOPE_NAMES) + [
        FieldError(f"policy.{field_error.field}", field_error.text) for field_error in policy_errors
    ]
    return MonitorDraft(
        name, given.cluster, given.consumer_group.strip(), scope, texts, given.overridable, tuple(field_errors)
    )


def format_policy(values: Mapping[str, PolicyValue]) -> tuple[dict[str, str], list[FieldError]]:
    """The policy keys as strings, and an error for each unknown key; null means not set."""
    texts: dict[str, str] = {}
    field_errors: list[FieldError] = []
    for name, value in values.items():
        if name not in KEYS_BY_NAME:
            field_errors.append(build_unknown_key_fault(name))
        elif value is not None and (text := format_policy_value(value)):
            texts[name] = text
    return texts, field_errors


def read_policy(stored: Mapping[str, object], minimum_interval: int) -> Policy:
    """The policy of stored keys, as the scaler reads it; tick and minimum were checked when it was written."""
    given = {str(name): str(text) for name, text in stored.items()}
    try:
        return parse_policy(given, tick_seconds=0.0, minimum_interval=minimum_interval)
    except InvalidInput:
        return parse_policy(given, tick_seconds=0.0)


@dataclass(frozen=True, slots=True)
class MeasuredMonitor:
    """A stored monitor, its tenant's minimum of `samplingInterval`, and its targets."""

    row: Row
    minimum_interval: int
    targets: Sequence[Row]

    @property
    def topics(self) -> Mapping[int, str]:
        """The topics of its targets by their ids."""
        return {int(target["id"]): str(target["topic"]) for target in self.targets}

    @property
    def policy(self) -> Policy:
        """The policy that its samples are judged by."""
        return read_policy(self.row["policy"], self.minimum_interval)

    @property
    def partial_reason(self) -> str:
        """Why only a part of its topics is measured; empty if all are."""
        return str(self.row["scope_message"]) if self.row["scope_code"] == StateCode.TOO_MANY_TOPICS else ""


async def read_measured(session: TenantSession, name: str) -> MeasuredMonitor:
    """The monitor of this name, with its targets.

    Raises:
        NotFound: there is no such monitor.
    """
    row = await monitors.read_by_name(session, name)
    targets = await monitors.read_targets(session, row["id"])
    return MeasuredMonitor(row, int(session.tenant["min_sampling_seconds"]), targets)
