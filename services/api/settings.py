"""The API's settings; `__main__` alone reads them."""

from __future__ import annotations

import ipaddress
import json
import ssl
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from lagscale.settings import ListenAddress, ServiceSettings
from lagscale.store.registry.api_keys import ROLES
from services.api.auth.tokens import ASYMMETRIC, TokenRules

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_MIN_KEY_LENGTH = 16


class ApiSettings(ServiceSettings):
    """Listener, database, probes of clusters, and who may call how often."""

    api_listen: ListenAddress = Field(
        default=":8080",
        description="Listen address of the API, for example 127.0.0.1:8080; `:8080` listens on all interfaces.",
    )
    api_docs: bool = Field(
        default=False,
        description="Serve Swagger UI at `/docs`, without a key; it needs no internet. `/openapi.json` is always served.",
    )
    api_admin_key: SecretStr | None = Field(
        default=None,
        description="Bootstrap key with all permissions, for creating the first API keys. At least 16 characters; generate "
        "one with `lagscale keys generate`.",
    )
    api_pool_size: int = Field(
        default=5, ge=1, le=100, description="Database connections for administration; verdicts use two more."
    )
    api_store_timeout_seconds: float = Field(
        default=2.5,
        gt=0,
        le=2.5,
        description="Timeout of a database statement and of waiting for a free connection, in seconds. An unresponsive "
        "database is given up after 3 s.",
    )
    api_group_status_interval_seconds: float = Field(
        default=60.0,
        ge=0,
        le=3600,
        description="Interval at which group statuses are counted for the metrics, in seconds; 0 disables counting. With "
        "several API replicas, enable it in one of them.",
    )
    api_preflight_timeout_seconds: float = Field(
        default=5.0,
        ge=0,
        le=60,
        description="Timeout of a cluster probe, in a preflight and at registration of a cluster or monitor, in seconds. 0 "
        "disables probes and their warnings.",
    )
    api_max_concurrent_preflights: int = Field(
        default=4,
        ge=1,
        le=64,
        description="Maximum number of concurrent cluster probes, each in its own process; at most two per tenant.",
    )
    api_trusted_proxies: str = Field(
        default="",
        description="Comma-separated addresses and networks of proxies in front of the API, for example 10.0.0.0/8. Their "
        "`X-Forwarded-For` gives the client address for audit and rate limits. Not set: the header is ignored.",
    )
    api_rate_limit: float = Field(
        default=100.0,
        ge=0,
        le=1_000_000,
        description="Requests per second allowed for each API key or token subject, per replica; 0 means no limit.",
    )
    api_rate_limit_burst: int = Field(
        default=500, ge=1, le=1_000_000, description="Burst size of LAGSCALE_API_RATE_LIMIT."
    )
    api_auth_failures_per_minute: float = Field(
        default=60.0,
        ge=0,
        le=1_000_000,
        description="Failed authentication attempts per minute allowed for each client address, per replica; 0 means no "
        "limit. Callers that authenticated within the last 10 minutes are exempt.",
    )
    api_oidc_issuer: str | None = Field(
        default=None,
        description="OpenID Connect issuer of bearer tokens, exactly as in the `iss` claim, for example "
        "https://login.example/realms/platform. Its keys are found by discovery. Not set: only API keys are "
        "accepted.",
    )
    api_oidc_audiences: str = Field(
        default="", description="Comma-separated audiences; a token must have one of them. Required with an issuer."
    )
    api_oidc_algorithms: str = Field(
        default="RS256,ES256",
        description="Comma-separated signature algorithms that are accepted; asymmetric ones only.",
    )
    api_oidc_leeway_seconds: float = Field(
        default=30.0, ge=0, le=300, description="Allowed clock skew of the issuer, in seconds."
    )
    api_oidc_ca_file: Path | None = Field(
        default=None,
        description="PEM file with the CA certificates for the issuer's TLS certificate, instead of the system's.",
    )
    api_oidc_tenant_claim: str = Field(
        default="tenant",
        min_length=1,
        description="Claim that names the tenant (string or list); use dots for nested claims.",
    )
    api_oidc_tenants: str = Field(
        default="",
        description='JSON object that maps values of the tenant claim to tenants, for example {"team-a": "shop"}. Not set: '
        "the claim is the tenant's name.",
    )
    api_oidc_role_claim: str = Field(
        default="role",
        min_length=1,
        description="Claim that names roles (string or list; the highest role applies); use dots for nested claims, for "
        "example realm_access.roles.",
    )
    api_oidc_roles: str = Field(
        default="",
        description='JSON object that maps values of the role claim to roles, for example {"lagscale-admins": '
        '"platform-admin"}. Not set: the claim is `platform-admin`, `tenant-admin` or `tenant-viewer`.',
    )

    @field_validator("api_admin_key")
    @classmethod
    def _check_length(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None or not value.get_secret_value():
            return None
        if len(value.get_secret_value()) < _MIN_KEY_LENGTH:
            raise ValueError(f"must have at least {_MIN_KEY_LENGTH} characters")
        return value

    @field_validator("api_trusted_proxies")
    @classmethod
    def _check_networks(cls, value: str) -> str:
        for part in _split_list(value):
            try:
                # Strict: a host's bits in a network are a slip that would trust more than was meant.
                ipaddress.ip_network(part)
            except ValueError:
                raise ValueError(
                    f"{part!r} is no address or network, as in 10.0.0.0/8; names are not looked up"
                ) from None
        return value

    @field_validator("api_oidc_issuer")
    @classmethod
    def _check_issuer(cls, value: str | None) -> str | None:
        if not value:
            return None
        address = urlsplit(value)
        if address.scheme == "https" and address.hostname:
            return value
        if address.scheme == "http" and address.hostname in _LOOPBACK:
            return value
        raise ValueError("must begin with https://; http:// is for a loopback address only")

    @field_validator("api_oidc_ca_file")
    @classmethod
    def _check_ca_file(cls, value: Path | None) -> Path | None:
        if value is not None:
            try:
                ssl.create_default_context(cafile=str(value))
            except OSError:
                raise ValueError("must name a readable file of certificates in PEM") from None
        return value

    @field_validator("api_oidc_algorithms")
    @classmethod
    def _check_algorithms(cls, value: str) -> str:
        unknown = [part for part in _split_list(value) if part not in ASYMMETRIC]
        if unknown or not _split_list(value):
            raise ValueError(f"must be of {', '.join(ASYMMETRIC)}")
        return value

    @field_validator("api_oidc_tenants", "api_oidc_roles")
    @classmethod
    def _check_mapping(cls, value: str) -> str:
        _parse_mapping(value)
        return value

    @field_validator("api_oidc_roles")
    @classmethod
    def _check_roles(cls, value: str) -> str:
        unknown = sorted(set(_parse_mapping(value).values()) - set(ROLES))
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no role; the roles are {', '.join(ROLES)}")
        return value

    @model_validator(mode="after")
    def _check_complete(self) -> Self:
        if self.api_oidc_issuer is not None and not _split_list(self.api_oidc_audiences):
            raise ValueError("LAGSCALE_API_OIDC_AUDIENCES must be set with LAGSCALE_API_OIDC_ISSUER")
        return self

    @property
    def proxies(self) -> tuple[str, ...]:
        """Addresses and networks that are trusted."""
        return _split_list(self.api_trusted_proxies)

    @property
    def token_rules(self) -> TokenRules | None:
        """What tokens must be; None where none count."""
        if self.api_oidc_issuer is None:
            return None
        return TokenRules(
            issuer=self.api_oidc_issuer,
            audiences=_split_list(self.api_oidc_audiences),
            algorithms=_split_list(self.api_oidc_algorithms),
            leeway_seconds=self.api_oidc_leeway_seconds,
            tenant_claim=self.api_oidc_tenant_claim,
            role_claim=self.api_oidc_role_claim,
            tenants=_parse_mapping(self.api_oidc_tenants),
            roles=_parse_mapping(self.api_oidc_roles),
        )


def _split_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _parse_mapping(text: str) -> dict[str, str]:
    if not text.strip():
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise ValueError('must be a JSON object of texts, as in {"their-name": "our-name"}')
    return found
