"""Builds the caller's identification from the settings; `__main__` calls it."""

from __future__ import annotations

from lagscale.rate_limit import Rates
from lagscale.store.registry.session import RegistryDatabase
from services.api.auth.access import Access
from services.api.auth.id_tokens import Tokens
from services.api.auth.issuer_keys import IssuerKeys
from services.api.auth.limits import Guard
from services.api.identity_settings import IdentitySettings

_MINUTE = 60.0


def access_by(settings: IdentitySettings, database: RegistryDatabase, admin_key: str | None) -> Access:
    """Who calls, by these settings; reads nothing yet."""
    rules = settings.token_rules
    tokens = None if rules is None else Tokens(rules, IssuerKeys(rules.issuer, settings.oidc_ca_file))
    of_keys = Rates(settings.key_rate, settings.key_burst) if settings.key_rate else None
    failures = settings.failures_per_minute
    of_failures = Rates(failures / _MINUTE, max(1.0, failures)) if failures else None
    return Access(database, admin_key, tokens=tokens, guard=Guard(of_keys, of_failures))
