"""The body of a tenant -> its columns, with its rules for policies checked and in one form."""

from __future__ import annotations

from typing import Any

from lagscale.domain.policy.tenant_rules import PolicyRules
from lagscale.errors import InvalidInput
from services.api.tenants.schemas import TenantIn


def build_tenant_columns(given: TenantIn, tick_seconds: float) -> dict[str, Any]:
    """The columns of the tenant.

    Raises:
        InvalidInput: the rules have faults, or the defaults are outside the limits.
    """
    defaults = {name: text for name, text in given.policy_defaults.items() if text}
    limits = {name: limit.model_dump(exclude_none=True) for name, limit in given.policy_limits.items()}
    rules = PolicyRules.read(defaults, limits)
    field_errors = rules.own_faults(tick_seconds=tick_seconds, minimum_interval=given.min_sampling_seconds)
    if field_errors:
        raise InvalidInput(field_errors)
    return given.model_dump(exclude={"name"}) | {"policy_defaults": defaults, "policy_limits": limits}
