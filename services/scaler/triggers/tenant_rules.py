"""A tenant's rules for policies, as the scaler has them in memory."""

from __future__ import annotations

import structlog

from lagscale.domain.policy.tenant_rules import NO_RULES, PolicyRules
from lagscale.errors import InvalidInput
from lagscale.store.records import TenantEntry

log = structlog.get_logger(__name__)


def read_rules(tenant: TenantEntry) -> PolicyRules:
    """The rules; none where they cannot be read: what is registered is answered all the same."""
    try:
        return PolicyRules.read(tenant.policy_defaults, tenant.policy_limits)
    except InvalidInput as error:
        # Written by another version of the API.
        log.warning("stored_rules_unreadable", tenant=tenant.name, error=error.message)
        return NO_RULES
