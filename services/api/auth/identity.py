"""Builds the caller's identification from the settings; `__main__` calls it."""

from __future__ import annotations

from lagscale.rate_limit import RateLimiter
from lagscale.store.registry.session import RegistryDatabase
from services.api.auth.authenticator import Authenticator
from services.api.auth.issuer_keys import IssuerKeys
from services.api.auth.rate_limits import AuthRateLimiter
from services.api.auth.tokens import TokenVerifier
from services.api.settings import ApiSettings

_MINUTE = 60.0


def build_authenticator(settings: ApiSettings, database: RegistryDatabase, admin_key: str | None) -> Authenticator:
    """Who calls, by these settings; reads nothing yet."""
    rules = settings.token_rules
    tokens = None if rules is None else TokenVerifier(rules, IssuerKeys(rules.issuer, settings.api_oidc_ca_file))
    key_rates = RateLimiter(settings.api_rate_limit, settings.api_rate_limit_burst) if settings.api_rate_limit else None
    failures = settings.api_auth_failures_per_minute
    failure_rates = RateLimiter(failures / _MINUTE, max(1.0, failures)) if failures else None
    return Authenticator(database, admin_key, tokens=tokens, guard=AuthRateLimiter(key_rates, failure_rates))
