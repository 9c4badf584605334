"""The part of the API's settings that says who may call, how often, and whose word counts for it."""

from __future__ import annotations

import ipaddress
import json
import ssl
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from lagscale.settings import ServiceSettings
from lagscale.store.registry.api_keys import ROLES
from services.api.auth.tokens import ASYMMETRIC, TokenRules

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class IdentitySettings(ServiceSettings):
    """Keys' rates, trusted proxies, and the issuer of bearer tokens."""

    trusted_proxies: str = Field(
        default="",
        description="Addresses and networks of proxies before the API, by commas, as in 10.0.0.0/8: their "
        "`X-Forwarded-For` tells the client's address to the audit and to limits. Without any, the header is not read.",
    )
    key_rate: float = Field(
        default=100.0,
        ge=0,
        le=1_000_000,
        description="Requests a second that one key, or one subject of tokens, may make of each replica; 0 sets no "
        "limit.",
    )
    key_burst: int = Field(
        default=500, ge=1, le=1_000_000, description="How many of them may come at once after a rest."
    )
    failures_per_minute: float = Field(
        default=60.0,
        ge=0,
        le=1_000_000,
        description="Failed attempts to authenticate a minute that one address may make of each replica before it is "
        "told to wait; 0 sets no limit. Callers that proved themselves within 10 minutes go on.",
    )
    oidc_issuer: str | None = Field(
        default=None,
        description="Issuer of bearer tokens (OpenID Connect), exactly as tokens name it, as in "
        "https://login.example/realms/platform; its keys are found by discovery. Not set: only API keys count.",
    )
    oidc_audiences: str = Field(
        default="", description="Audiences by commas, one of which a token must be for. Needed with an issuer."
    )
    oidc_algorithms: str = Field(
        default="RS256,ES256", description="Signatures that count, by commas; asymmetric ones only."
    )
    oidc_leeway_seconds: float = Field(
        default=30.0, ge=0, le=300, description="How far the issuer's clock may be off, seconds."
    )
    oidc_ca_file: Path | None = Field(
        default=None, description="PEM file of the authorities that vouch for the issuer, in place of the public ones."
    )
    oidc_tenant_claim: str = Field(
        default="tenant",
        min_length=1,
        description="The claim that names the tenant: a text or a list; dots lead into nested claims.",
    )
    oidc_tenants: str = Field(
        default="",
        description='JSON object, value of that claim -> tenant, as in {"team-a": "shop"}. Not set: the claim holds '
        "the tenant's name.",
    )
    oidc_role_claim: str = Field(
        default="role",
        min_length=1,
        description="The claim that names roles: a text or a list, of which the highest role counts; dots lead into "
        "nested claims, as in realm_access.roles.",
    )
    oidc_roles: str = Field(
        default="",
        description='JSON object, value of that claim -> role, as in {"lagscale-admins": "platform-admin"}. Not set: '
        "the claim holds `platform-admin`, `tenant-admin` or `tenant-viewer`.",
    )

    @field_validator("trusted_proxies")
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

    @field_validator("oidc_issuer")
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

    @field_validator("oidc_ca_file")
    @classmethod
    def _check_ca_file(cls, value: Path | None) -> Path | None:
        if value is not None:
            try:
                ssl.create_default_context(cafile=str(value))
            except OSError:
                raise ValueError("must name a readable file of certificates in PEM") from None
        return value

    @field_validator("oidc_algorithms")
    @classmethod
    def _check_algorithms(cls, value: str) -> str:
        unknown = [part for part in _split_list(value) if part not in ASYMMETRIC]
        if unknown or not _split_list(value):
            raise ValueError(f"must be of {', '.join(ASYMMETRIC)}")
        return value

    @field_validator("oidc_tenants", "oidc_roles")
    @classmethod
    def _check_mapping(cls, value: str) -> str:
        _parse_mapping(value)
        return value

    @field_validator("oidc_roles")
    @classmethod
    def _check_roles(cls, value: str) -> str:
        unknown = sorted(set(_parse_mapping(value).values()) - set(ROLES))
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no role; the roles are {', '.join(ROLES)}")
        return value

    @model_validator(mode="after")
    def _check_complete(self) -> Self:
        if self.oidc_issuer is not None and not _split_list(self.oidc_audiences):
            raise ValueError("LAGSCALE_OIDC_AUDIENCES must be set with LAGSCALE_OIDC_ISSUER")
        return self

    @property
    def proxies(self) -> tuple[str, ...]:
        """Addresses and networks that are trusted."""
        return _split_list(self.trusted_proxies)

    @property
    def token_rules(self) -> TokenRules | None:
        """What tokens must be; None where none count."""
        if self.oidc_issuer is None:
            return None
        return TokenRules(
            issuer=self.oidc_issuer,
            audiences=_split_list(self.oidc_audiences),
            algorithms=_split_list(self.oidc_algorithms),
            leeway_seconds=self.oidc_leeway_seconds,
            tenant_claim=self.oidc_tenant_claim,
            role_claim=self.oidc_role_claim,
            tenants=_parse_mapping(self.oidc_tenants),
            roles=_parse_mapping(self.oidc_roles),
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
