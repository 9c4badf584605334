"""Where the command finds the services, and its key; the commands read them."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from lagscale.settings import PREFIX


class CliSettings(BaseSettings):
    """What the command needs; every part only where a command asks for it."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", hide_input_in_errors=True)

    api_url: str = Field(default="http://127.0.0.1:8080", description="The API's address.")
    api_key: SecretStr | None = Field(
        default=None, description="The key that the command sends; a tenant's or an administrator's."
    )
    scaler_url: str | None = Field(
        default=None, description="The scaler's HTTP address, as in http://127.0.0.1:8081; `status` asks it too."
    )
    scraper_url: str | None = Field(
        default=None, description="The scraper's HTTP address, as in http://127.0.0.1:8082; `status` asks it too."
    )
    database_url: SecretStr | None = Field(
        default=None, description="The database, for `lagscale migrate` and `lagscale secrets rotate` alone."
    )
    secret_keys: SecretStr = Field(
        default=SecretStr(""),
        description="The services' keys, the newest in front, for `lagscale secrets rotate` alone.",
    )


def environment() -> Mapping[str, str]:
    """The variables where the command runs, for what files refer to."""
    return os.environ
