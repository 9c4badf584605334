"""Settings from the environment: what every service shares, and the one table of all variables with our prefix.

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
from lagscale.kafka.secret_references import TENANT_VARIABLE_PREFIX

PREFIX = "LAGSCALE_"

#: Every variable with our prefix, and who reads it. A variable outside this table stops the start: it is a slip.
SETTING_OWNERS: Mapping[str, str] = {
    "LAGSCALE_DATABASE_URL": "all",
    "LAGSCALE_SECRET_KEYS": "all",
    "LAGSCALE_SECRET_DIRECTORY": "all",
    "LAGSCALE_TICK_SECONDS": "all",
    "LAGSCALE_ALLOWED_ADDRESSES": "all",
    "LAGSCALE_REFUSE_PRIVATE_ADDRESSES": "all",
    "LAGSCALE_SCRATCH_DIR": "all",
    "LAGSCALE_LOG_LEVEL": "all",
    "LAGSCALE_LOG_FORMAT": "all",
    "LAGSCALE_API_LISTEN": "api",
    "LAGSCALE_ADMIN_KEY": "api",
    "LAGSCALE_API_POOL_SIZE": "api",
    "LAGSCALE_STORE_SECONDS": "api",
    "LAGSCALE_STATES_SECONDS": "api",
    "LAGSCALE_TRUSTED_PROXIES": "api",
    "LAGSCALE_KEY_RATE": "api",
    "LAGSCALE_KEY_BURST": "api",
    "LAGSCALE_FAILURES_PER_MINUTE": "api",
    "LAGSCALE_OIDC_ISSUER": "api",
    "LAGSCALE_OIDC_AUDIENCES": "api",
    "LAGSCALE_OIDC_ALGORITHMS": "api",
    "LAGSCALE_OIDC_LEEWAY_SECONDS": "api",
    "LAGSCALE_OIDC_CA_FILE": "api",
    "LAGSCALE_OIDC_TENANT_CLAIM": "api",
    "LAGSCALE_OIDC_TENANTS": "api",
    "LAGSCALE_OIDC_ROLE_CLAIM": "api",
    "LAGSCALE_OIDC_ROLES": "api",
    "LAGSCALE_PREFLIGHT_SECONDS": "api",
    "LAGSCALE_PREFLIGHTS_AT_ONCE": "api",
    "LAGSCALE_SCALER_GRPC_LISTEN": "scaler",
    "LAGSCALE_SCALER_GRPC_SECURITY": "scaler",
    "LAGSCALE_SCALER_MTLS_LISTEN": "scaler",
    "LAGSCALE_SCALER_TLS_CERTIFICATE_FILE": "scaler",
    "LAGSCALE_SCALER_TLS_KEY_FILE": "scaler",
    "LAGSCALE_SCALER_TLS_CLIENT_CA_FILE": "scaler",
    "LAGSCALE_SCALER_HTTP_LISTEN": "scaler",
    "LAGSCALE_CALL_SECONDS": "scaler",
    "LAGSCALE_SCALER_POOL_SIZE": "scaler",
    "LAGSCALE_MEMO_SECONDS": "scaler",
    "LAGSCALE_CONNECTION_AGE_SECONDS": "scaler",
    "LAGSCALE_CONNECTION_GRACE_SECONDS": "scaler",
    "LAGSCALE_DRAIN_SECONDS": "scaler",
    "LAGSCALE_REUSE_ADDRESS": "scaler",
    "LAGSCALE_SCRAPER_HTTP_LISTEN": "scraper",
    "LAGSCALE_RETENTION_HOURS": "scraper",
    "LAGSCALE_SPARK_MASTER": "scraper",
    "LAGSCALE_SPARK_DRIVER_MEMORY": "scraper",
    "LAGSCALE_SPARK_SLOTS": "scraper",
    "LAGSCALE_TOPICS_SECONDS": "scraper",
    "LAGSCALE_TOPICS_LIMIT": "scraper",
    "LAGSCALE_CLIENTS_LIMIT": "scraper",
    "LAGSCALE_TENANT_PARTITIONS": "scraper",
    "LAGSCALE_API_URL": "cli",
    "LAGSCALE_API_KEY": "cli",
    "LAGSCALE_SCALER_URL": "cli",
    "LAGSCALE_SCRAPER_URL": "cli",
    "LAGSCALE_KAFKA_BOOTSTRAP": "devstack",
}

Settings = TypeVar("Settings", bound=BaseSettings)


def list_variable_names() -> frozenset[str]:
    """The names of all variables with our prefix that some part of Lagscale reads."""
    return frozenset(SETTING_OWNERS)


def split_address(text: str) -> tuple[str, int]:
    """Host and port of `host:port`, `[v6]:port` or `:port` (all interfaces).

    Raises:
        ValueError: the text is no such address.
    """
    left, colon, right = text.strip().rpartition(":")
    if not colon or not right.isdecimal() or int(right) > 65535:
        raise ValueError("must read like 127.0.0.1:8080 or [::1]:8080")
    return left.removeprefix("[").removesuffix("]"), int(right)


def _check_address(text: str) -> str:
    split_address(text)
    return text.strip()


#: A listening address as `host:port`. One field, because Kubernetes injects variables that end in `_PORT`.
ListenAddress = Annotated[str, AfterValidator(_check_address)]


class ServiceSettings(BaseSettings):
    """What every service needs; frozen, secrets typed as such."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", hide_input_in_errors=True)

    database_url: SecretStr = Field(
        description="PostgreSQL or TimescaleDB, as in postgresql://user:password@db.example:5432/lagscale."
    )
    secret_keys: SecretStr = Field(
        default=SecretStr(""),
        description="Fernet keys for the clusters' secrets, by commas: the first encrypts, all decrypt. "
        "Make one with `lagscale keys generate`.",
    )
    secret_directory: Path | None = Field(
        default=None,
        description="Holds a directory for each tenant, by its name, with the secrets that its clusters refer to as "
        "files. Mounted into scraper and API; read again at each poll.",
    )
    tick_seconds: float = Field(
        default=5.0,
        ge=0.5,
        le=3600,
        description="The scraper's tick in seconds; no monitor is polled more often. The same for all services.",
    )
    scratch_dir: Path = Field(
        default_factory=lambda: Path(tempfile.gettempdir()) / "lagscale",
        description="A writable directory that may be lost at any time: checkpoints, last known registrations.",
    )
    allowed_addresses: str = Field(
        default="",
        description="The only addresses that tenants' clusters may have, by commas: networks as in 10.2.0.0/16, ends of "
        "hosts' names as in kafka.example, each with `:9092` if only that port. Not set: any. The same for scraper and API.",
    )
    refuse_private_addresses: bool = Field(
        default=False,
        description="Refuse clusters at addresses that are not public (private, loopback, link-local) and not on the "
        "list of allowed ones. The same for scraper and API.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least level logged."
    )
    log_format: Literal["json", "console"] = Field(
        default="json", description="One JSON object a line, or lines for a person."
    )

    @property
    def address_rules(self) -> AddressRules:
        """Which addresses tenants' clusters may have."""
        return AddressRules.read(self.allowed_addresses, self.refuse_private_addresses)

    @field_validator("allowed_addresses")
    @classmethod
    def _is_allow_list(cls, value: str) -> str:
        AddressRules.read(value)
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
        alias="KAFKA_BROKERS", description="Bootstrap servers by commas, as in kafka-0:9092,kafka-1:9092."
    )
    topic: str = Field(alias="KAFKA_TOPIC", description="The topic, or several by commas.")
    group: str = Field(alias="KAFKA_GROUP_ID", description="The consumer group whose lag is judged.")
    lag_threshold: str | None = Field(default=None, alias="LAG_THRESHOLD", description="`lagThreshold` of the policy.")
    sustain_seconds: str | None = Field(
        default=None, alias="SUSTAIN_SECONDS", description="`sustainSeconds` of the policy."
    )
    sampling_interval: str | None = Field(
        default=None, alias="SAMPLING_INTERVAL", description="`samplingInterval` of the policy."
    )
    window_size: str | None = Field(default=None, alias="WINDOW_SIZE", description="`windowSize` of the policy.")
    grpc_port: int = Field(
        default=50051, ge=0, le=65535, alias="GRPC_PORT", description="The scaler's gRPC port, on all interfaces."
    )

    @classmethod
    def is_configured(cls, environ: Mapping[str, str]) -> bool:
        """Whether the environment describes a monitor: any of Kafka's three names is set."""
        return any(environ.get(name) for name in ("KAFKA_BROKERS", "KAFKA_TOPIC", "KAFKA_GROUP_ID"))

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> SingleMonitorSettings:
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
        extra_names: further names with our prefix that are no slip.

    Raises:
        SettingsInvalid: with every fault at once, by the variables' names, without any value.
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
    """A fault for each variable with our prefix that nothing of ours reads, with its nearest neighbour."""
    valid_names = list_variable_names() | set(extra_names)
    field_errors = []
    for name in sorted(set(environ) - valid_names):
        if name.startswith(TENANT_VARIABLE_PREFIX):
            continue
        # Names are compared in capitals, because pydantic-settings reads them in any case.
        if name.upper().startswith(PREFIX) and name.upper() not in valid_names:
            nearest = difflib.get_close_matches(name.upper(), sorted(valid_names), n=1, cutoff=0.0)
            field_errors.append(FieldError(name, f"is no setting of Lagscale; did you mean {nearest[0]}?"))
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
