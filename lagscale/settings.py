"""Settings from the environment: those that all services share, and the table of all variables with our prefix.

Each service extends `ServiceSettings` in its own `settings.py` and calls `load` in its `main`, nowhere else.
"""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from lagscale.errors import FieldError, SettingsInvalid
from lagscale.kafka.addresses import AddressRules
from lagscale.kafka.secrets import TENANT_VARIABLE_PREFIX

PREFIX = "LAGSCALE_"

#: Every variable with our prefix that some part of Lagscale reads. Any other stops the start: it is a typo.
SETTING_NAMES = frozenset(
    {
        # all services
        "LAGSCALE_DATABASE_URL",
        "LAGSCALE_SECRET_KEYS",
        "LAGSCALE_SECRET_DIR",
        "LAGSCALE_TICK_SECONDS",
        "LAGSCALE_ALLOWED_ADDRESSES",
        "LAGSCALE_DENY_PRIVATE_ADDRESSES",
        "LAGSCALE_CACHE_DIR",
        "LAGSCALE_LOG_LEVEL",
        "LAGSCALE_LOG_FORMAT",
        # API
        "LAGSCALE_API_LISTEN",
        "LAGSCALE_API_DOCS",
        "LAGSCALE_API_ADMIN_KEY",
        "LAGSCALE_API_POOL_SIZE",
        "LAGSCALE_API_STORE_TIMEOUT_SECONDS",
        "LAGSCALE_API_GROUP_STATUS_INTERVAL_SECONDS",
        "LAGSCALE_API_TRUSTED_PROXIES",
        "LAGSCALE_API_RATE_LIMIT",
        "LAGSCALE_API_RATE_LIMIT_BURST",
        "LAGSCALE_API_AUTH_FAILURES_PER_MINUTE",
        "LAGSCALE_API_OIDC_ISSUER",
        "LAGSCALE_API_OIDC_AUDIENCES",
        "LAGSCALE_API_OIDC_ALGORITHMS",
        "LAGSCALE_API_OIDC_LEEWAY_SECONDS",
        "LAGSCALE_API_OIDC_CA_FILE",
        "LAGSCALE_API_OIDC_TENANT_CLAIM",
        "LAGSCALE_API_OIDC_TENANTS",
        "LAGSCALE_API_OIDC_ROLE_CLAIM",
        "LAGSCALE_API_OIDC_ROLES",
        "LAGSCALE_API_PREFLIGHT_TIMEOUT_SECONDS",
        "LAGSCALE_API_MAX_CONCURRENT_PREFLIGHTS",
        # scaler
        "LAGSCALE_SCALER_GRPC_LISTEN",
        "LAGSCALE_SCALER_GRPC_SECURITY",
        "LAGSCALE_SCALER_MTLS_LISTEN",
        "LAGSCALE_SCALER_TLS_CERTIFICATE_FILE",
        "LAGSCALE_SCALER_TLS_KEY_FILE",
        "LAGSCALE_SCALER_TLS_CLIENT_CA_FILE",
        "LAGSCALE_SCALER_HTTP_LISTEN",
        "LAGSCALE_SCALER_CALL_TIMEOUT_SECONDS",
        "LAGSCALE_SCALER_POOL_SIZE",
        "LAGSCALE_SCALER_SNAPSHOT_TTL_SECONDS",
        "LAGSCALE_SCALER_MAX_CONNECTION_AGE_SECONDS",
        "LAGSCALE_SCALER_MAX_CONNECTION_AGE_GRACE_SECONDS",
        "LAGSCALE_SCALER_DRAIN_SECONDS",
        "LAGSCALE_SCALER_REUSE_PORT",
        # scraper
        "LAGSCALE_SCRAPER_HTTP_LISTEN",
        "LAGSCALE_SCRAPER_RETENTION_HOURS",
        "LAGSCALE_SCRAPER_SPARK_MASTER",
        "LAGSCALE_SCRAPER_SPARK_DRIVER_MEMORY",
        "LAGSCALE_SCRAPER_SPARK_SLOTS",
        "LAGSCALE_SCRAPER_TOPIC_DISCOVERY_INTERVAL_SECONDS",
        "LAGSCALE_SCRAPER_MAX_TOPICS_PER_MONITOR",
        "LAGSCALE_SCRAPER_MAX_KAFKA_CLIENTS",
        "LAGSCALE_SCRAPER_MAX_TENANT_PARTITIONS_PER_TICK",
        # command line
        "LAGSCALE_API_URL",
        "LAGSCALE_API_KEY",
        "LAGSCALE_SCALER_URL",
        "LAGSCALE_SCRAPER_URL",
        # development
        "LAGSCALE_DEVSTACK_KAFKA_BOOTSTRAP",
    }
)

#: Former name of a setting -> its name today. A former name stops the start, and the text names the new one.
RENAMED: Mapping[str, str] = {
    "LAGSCALE_SECRET_DIRECTORY": "LAGSCALE_SECRET_DIR",
    "LAGSCALE_SCRATCH_DIR": "LAGSCALE_CACHE_DIR",
    "LAGSCALE_REFUSE_PRIVATE_ADDRESSES": "LAGSCALE_DENY_PRIVATE_ADDRESSES",
    "LAGSCALE_ADMIN_KEY": "LAGSCALE_API_ADMIN_KEY",
    "LAGSCALE_STORE_SECONDS": "LAGSCALE_API_STORE_TIMEOUT_SECONDS",
    "LAGSCALE_STATES_SECONDS": "LAGSCALE_API_GROUP_STATUS_INTERVAL_SECONDS",
    "LAGSCALE_TRUSTED_PROXIES": "LAGSCALE_API_TRUSTED_PROXIES",
    "LAGSCALE_KEY_RATE": "LAGSCALE_API_RATE_LIMIT",
    "LAGSCALE_KEY_BURST": "LAGSCALE_API_RATE_LIMIT_BURST",
    "LAGSCALE_FAILURES_PER_MINUTE": "LAGSCALE_API_AUTH_FAILURES_PER_MINUTE",
    "LAGSCALE_OIDC_ISSUER": "LAGSCALE_API_OIDC_ISSUER",
    "LAGSCALE_OIDC_AUDIENCES": "LAGSCALE_API_OIDC_AUDIENCES",
    "LAGSCALE_OIDC_ALGORITHMS": "LAGSCALE_API_OIDC_ALGORITHMS",
    "LAGSCALE_OIDC_LEEWAY_SECONDS": "LAGSCALE_API_OIDC_LEEWAY_SECONDS",
    "LAGSCALE_OIDC_CA_FILE": "LAGSCALE_API_OIDC_CA_FILE",
    "LAGSCALE_OIDC_TENANT_CLAIM": "LAGSCALE_API_OIDC_TENANT_CLAIM",
    "LAGSCALE_OIDC_TENANTS": "LAGSCALE_API_OIDC_TENANTS",
    "LAGSCALE_OIDC_ROLE_CLAIM": "LAGSCALE_API_OIDC_ROLE_CLAIM",
    "LAGSCALE_OIDC_ROLES": "LAGSCALE_API_OIDC_ROLES",
    "LAGSCALE_PREFLIGHT_SECONDS": "LAGSCALE_API_PREFLIGHT_TIMEOUT_SECONDS",
    "LAGSCALE_PREFLIGHTS_AT_ONCE": "LAGSCALE_API_MAX_CONCURRENT_PREFLIGHTS",
    "LAGSCALE_CALL_SECONDS": "LAGSCALE_SCALER_CALL_TIMEOUT_SECONDS",
    "LAGSCALE_MEMO_SECONDS": "LAGSCALE_SCALER_SNAPSHOT_TTL_SECONDS",
    "LAGSCALE_CONNECTION_AGE_SECONDS": "LAGSCALE_SCALER_MAX_CONNECTION_AGE_SECONDS",
    "LAGSCALE_CONNECTION_GRACE_SECONDS": "LAGSCALE_SCALER_MAX_CONNECTION_AGE_GRACE_SECONDS",
    "LAGSCALE_DRAIN_SECONDS": "LAGSCALE_SCALER_DRAIN_SECONDS",
    "LAGSCALE_REUSE_ADDRESS": "LAGSCALE_SCALER_REUSE_PORT",
    "LAGSCALE_RETENTION_HOURS": "LAGSCALE_SCRAPER_RETENTION_HOURS",
    "LAGSCALE_SPARK_MASTER": "LAGSCALE_SCRAPER_SPARK_MASTER",
    "LAGSCALE_SPARK_DRIVER_MEMORY": "LAGSCALE_SCRAPER_SPARK_DRIVER_MEMORY",
    "LAGSCALE_SPARK_SLOTS": "LAGSCALE_SCRAPER_SPARK_SLOTS",
    "LAGSCALE_TOPICS_SECONDS": "LAGSCALE_SCRAPER_TOPIC_DISCOVERY_INTERVAL_SECONDS",
    "LAGSCALE_TOPICS_LIMIT": "LAGSCALE_SCRAPER_MAX_TOPICS_PER_MONITOR",
    "LAGSCALE_CLIENTS_LIMIT": "LAGSCALE_SCRAPER_MAX_KAFKA_CLIENTS",
    "LAGSCALE_TENANT_PARTITIONS": "LAGSCALE_SCRAPER_MAX_TENANT_PARTITIONS_PER_TICK",
    "LAGSCALE_KAFKA_BOOTSTRAP": "LAGSCALE_DEVSTACK_KAFKA_BOOTSTRAP",
}

Settings = TypeVar("Settings", bound=BaseSettings)


def split_address(text: str) -> tuple[str, int]:
    """Host and port of `host:port`, `[v6]:port` or `:port` (all interfaces).

    Raises:
        ValueError: invalid address.
    """
    left, colon, right = text.strip().rpartition(":")
    if not colon or not right.isdecimal() or int(right) > 65535:
        raise ValueError("must have the form 127.0.0.1:8080 or [::1]:8080")
    return left.removeprefix("[").removesuffix("]"), int(right)


def _check_address(text: str) -> str:
    split_address(text)
    return text.strip()


#: A listen address as `host:port`. One field, because Kubernetes injects variables that end in `_PORT`.
ListenAddress = Annotated[str, AfterValidator(_check_address)]


class ServiceSettings(BaseSettings):
    """Settings of all services; frozen, secrets typed as such."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", hide_input_in_errors=True)

    database_url: SecretStr = Field(
        description="Connection URL of PostgreSQL or TimescaleDB, for example "
        "postgresql://user:password@db.example:5432/lagscale."
    )
    secret_keys: SecretStr = Field(
        default=SecretStr(""),
        description="Comma-separated Fernet keys for cluster secrets: the first encrypts, all decrypt. Generate one with "
        "`lagscale keys generate`.",
    )
    secret_dir: Path | None = Field(
        default=None,
        description="Directory with one subdirectory per tenant name, which holds the secret files that the tenant's clusters"
        " refer to. Mount it into the scraper and the API; files are read again at each poll.",
    )
    tick_seconds: float = Field(
        default=5.0,
        ge=0.5,
        le=3600,
        description="Length of the scraper's tick in seconds: the shortest sampling interval. Must be the same for all "
        "services.",
    )
    cache_dir: Path = Field(
        default_factory=lambda: Path(tempfile.gettempdir()) / "lagscale",
        description="Writable directory for disposable data: Spark checkpoints and the scaler's local cache.",
    )
    allowed_addresses: str = Field(
        default="",
        description="Comma-separated allow list for the addresses of tenants' clusters: networks (10.2.0.0/16) or host name "
        "suffixes (kafka.example), each optionally with a port (:9092). Not set: all addresses are allowed. Must "
        "be the same for the scraper and the API.",
    )
    deny_private_addresses: bool = Field(
        default=False,
        description="Deny clusters at non-public addresses (private, loopback, link-local) unless LAGSCALE_ALLOWED_ADDRESSES "
        "lists them. Must be the same for the scraper and the API.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Minimum level that is logged."
    )
    log_format: Literal["json", "console"] = Field(
        default="json", description="`json`: one object per line; `console`: human-readable lines."
    )

    @property
    def address_rules(self) -> AddressRules:
        """Allowed addresses of tenants' clusters."""
        return AddressRules.parse(self.allowed_addresses, self.deny_private_addresses)

    @field_validator("allowed_addresses")
    @classmethod
    def _is_allow_list(cls, value: str) -> str:
        AddressRules.parse(value)
        return value

    @field_validator("database_url")
    @classmethod
    def _is_postgres(cls, value: SecretStr) -> SecretStr:
        if not value.get_secret_value().startswith(("postgresql://", "postgres://")):
            raise ValueError("must begin with postgresql://")
        return value


class SingleMonitorSettings(BaseModel):
    """One monitor by environment, without any registration: the three names of Kafka, and policy keys if wanted."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    brokers: str = Field(
        alias="KAFKA_BROKERS", description="Comma-separated bootstrap servers, for example kafka-0:9092,kafka-1:9092."
    )
    topic: str = Field(alias="KAFKA_TOPIC", description="Topic, or a comma-separated list of topics.")
    group: str = Field(alias="KAFKA_GROUP_ID", description="Consumer group whose lag is evaluated.")
    lag_threshold: str | None = Field(default=None, alias="LAG_THRESHOLD", description="`lagThreshold` of the policy.")
    sustain_seconds: str | None = Field(
        default=None, alias="SUSTAIN_SECONDS", description="`sustainSeconds` of the policy."
    )
    sampling_interval: str | None = Field(
        default=None, alias="SAMPLING_INTERVAL", description="`samplingInterval` of the policy."
    )
    window_size: str | None = Field(default=None, alias="WINDOW_SIZE", description="`windowSize` of the policy.")
    grpc_port: int = Field(
        default=50051, ge=0, le=65535, alias="GRPC_PORT", description="gRPC port of the scaler, on all interfaces."
    )

    @classmethod
    def is_configured(cls, environ: Mapping[str, str]) -> bool:
        """Whether the environment describes a monitor: any of Kafka's three names is set."""
        return any(environ.get(name) for name in ("KAFKA_BROKERS", "KAFKA_TOPIC", "KAFKA_GROUP_ID"))

    @classmethod
    def parse(cls, environ: Mapping[str, str]) -> SingleMonitorSettings:
        """Read them; an empty variable is an absent one.

        Raises:
            SettingsInvalid: with every fault at once.
        """
        try:
            return cls.model_validate({name: text for name, text in environ.items() if text.strip()})
        except ValidationError as invalid:
            field_errors = _to_field_errors(cls, invalid)
            raise SettingsInvalid(
                "; ".join(str(field_error) for field_error in field_errors), field_errors=field_errors
            ) from None

    def policy(self) -> dict[str, str]:
        """The policy keys as given."""
        given = {
            "lagThreshold": self.lag_threshold,
            "sustainSeconds": self.sustain_seconds,
            "samplingInterval": self.sampling_interval,
            "windowSize": self.window_size,
        }
        return {name: text for name, text in given.items() if text}

    def topics(self) -> list[str]:
        """The topics, without doubles, in order."""
        return list(dict.fromkeys(part.strip() for part in self.topic.split(",") if part.strip()))


def load(settings: type[Settings], extra_names: Iterable[str] = ()) -> Settings:
    """Read the settings from the environment.

    Args:
        settings: the service's class.
        extra_names: further valid names with our prefix.

    Raises:
        SettingsInvalid: with all errors, by variable name and without any value.
    """
    field_errors = find_unknown_names(os.environ, extra_names)
    try:
        read = settings()
    except ValidationError as invalid:
        field_errors.extend(_to_field_errors(settings, invalid))
    else:
        if not field_errors:
            return read
    raise SettingsInvalid("; ".join(str(field_error) for field_error in field_errors), field_errors=field_errors)


def find_unknown_names(environ: Iterable[str], extra_names: Iterable[str] = ()) -> list[FieldError]:
    """An error for each variable with our prefix that nothing reads: it names the new name, or the nearest one."""
    valid_names = SETTING_NAMES | set(extra_names)
    field_errors = []
    for variable in sorted(set(environ) - valid_names):
        # pydantic-settings reads names in any case.
        name = variable.upper()
        if not name.startswith(PREFIX) or name in valid_names:
            continue
        if name in RENAMED:
            field_errors.append(FieldError(variable, f"was renamed to {RENAMED[name]}; set that instead"))
        elif not variable.startswith(TENANT_VARIABLE_PREFIX):
            nearest = difflib.get_close_matches(name, sorted(valid_names), n=1, cutoff=0.0)
            field_errors.append(FieldError(variable, f"unknown setting; did you mean {nearest[0]}?"))
    return field_errors


def read_tenant_variables() -> dict[str, str]:
    """The variables that tenants' clusters may refer to; no setting is among them."""
    return {name: text for name, text in os.environ.items() if name.startswith(TENANT_VARIABLE_PREFIX)}


def _to_field_errors(settings: type[BaseModel], invalid: ValidationError) -> list[FieldError]:
    return [
        _to_field_error(settings, error["loc"], error["msg"])
        for error in invalid.errors(include_input=False, include_url=False)
    ]


def _to_field_error(settings: type[BaseModel], location: tuple[int | str, ...], text: str) -> FieldError:
    name = str(location[0]) if location else "settings"
    field = settings.model_fields.get(name)
    prefix = settings.model_config.get("env_prefix", "")
    variable = name if field is None or field.alias else f"{prefix}{name}".upper()
    return FieldError(variable, text.removeprefix("Value error, ").replace("Field required", "must be set"))
