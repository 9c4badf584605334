"""Where the command finds the services, and its key; the commands read them."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from lagscale.settings import PREFIX


class CliSettings(BaseSettings):
    """Settings of the command. Every command loads them, so that former and unknown names stop it; none is required by all."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", hide_input_in_errors=True)

    api_url: str = Field(default="http://127.0.0.1:8080", description="URL of the API.")
    api_key: SecretStr | None = Field(
        default=None, description="API key sent by the command: a tenant's or a platform administrator's."
    )
    scaler_url: str | None = Field(
        default=None,
        description="URL of the scaler's HTTP port, for example http://127.0.0.1:8081; queried by `lagscale status`.",
    )
    scraper_url: str | None = Field(
        default=None,
        description="URL of the scraper's HTTP port, for example http://127.0.0.1:8082; queried by `lagscale status`.",
    )
    database_url: SecretStr | None = Field(
        default=None, description="Database URL; used by `lagscale migrate` and `lagscale secrets rotate` only."
    )
    secret_keys: SecretStr = Field(
        default=SecretStr(""),
        description="Fernet keys of the services, newest first; used by `lagscale secrets rotate` only.",
    )


def environment() -> Mapping[str, str]:
    """The variables where the command runs, for what files refer to."""
    return os.environ
