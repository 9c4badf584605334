"""A stored monitor's policy, as the scaler reads it."""

from __future__ import annotations

from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.policy.policy import Policy
from lagscale.errors import InvalidInput
from lagscale.store.registry.session import Row


def read_policy(row: Row, minimum_interval: int) -> Policy:
    """The policy of a monitor's row; the rules of tick and minimum were checked when it was written."""
    given = {str(name): str(text) for name, text in row["policy"].items()}
    try:
        return parse_policy(given, tick_seconds=0.0, minimum_interval=minimum_interval)
    except InvalidInput:
        return parse_policy(given, tick_seconds=0.0)
