"""Builds the caller's identification from the settings; `__main__` calls it."""

from __future__ import annotations

from lagscale.rate_limit import RateLimiter
from lagscale.store.registry.session import RegistryDatabase
from services.api.auth.authenticator import Authenticator
from services.api.auth.issuer_keys import IssuerKeys
from services.api.auth.rate_limits import AuthRateLimiter
from services.api.auth.tokens import TokenVerifier
from services.api.identity_settings import IdentitySettings

_MINUTE = 60.0


def build_authenticator(settings: IdentitySettings, database: RegistryDatabase, admin_key: str | None) -> Authenticator:
    """Who calls, by these settings; reads nothing yet."""
    rules = settings.token_rules
    tokens = None if rules is None else TokenVerifier(rules, IssuerKeys(rules.issuer, settings.oidc_ca_file))
    key_rates = RateLimiter(settings.key_rate, settings.key_burst) if settings.key_rate else None
    failures = settings.failures_per_minute
    failure_rates = RateLimiter(failures / _MINUTE, max(1.0, failures)) if failures else None
    return Authenticator(database, admin_key, tokens=tokens, guard=AuthRateLimiter(key_rates, failure_rates))
