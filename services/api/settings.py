"""The API's settings; `__main__` alone reads them."""

from __future__ import annotations

from pydantic import Field, SecretStr, field_validator

from lagscale.settings import ListenAddress
from services.api.identity_settings import IdentitySettings

_MIN_KEY_LENGTH = 16


class ApiSettings(IdentitySettings):
    """What the administration's service needs."""

    api_listen: ListenAddress = Field(
        default=":8080", description="Where the API listens, as in 127.0.0.1:8080; `:8080` is every interface."
    )
    admin_key: SecretStr | None = Field(
        default=None,
        description="A key that may do everything, for the first steps: with it the first real keys are made. "
        "At least 16 characters; `lagscale keys generate` makes one.",
    )
    api_pool_size: int = Field(
        default=5, ge=1, le=100, description="Database connections of the administration; verdicts have two more."
    )
    store_seconds: float = Field(
        default=2.5,
        gt=0,
        le=2.5,
        description="How long a statement, or a wait for a free connection, may take; a store that says nothing at "
        "all is given up after 3 s.",
    )
    states_seconds: float = Field(
        default=60.0,
        ge=0,
        le=3600,
        description="How often the states of all groups are counted for the metrics, seconds; 0 counts none. With "
        "several replicas of the API, count in one of them.",
    )

    preflight_seconds: float = Field(
        default=5.0,
        ge=0,
        le=60,
        description="How long a look at a cluster may take, in a preflight and when a cluster or a monitor is "
        "registered; seconds. 0 looks at nothing, so nothing is warned of.",
    )
    preflights_at_once: int = Field(
        default=4,
        ge=1,
        le=64,
        description="The greatest number of clusters looked at at a time, by one process each; two for one tenant.",
    )

    @field_validator("admin_key")
    @classmethod
    def _check_length(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None or not value.get_secret_value():
            return None
        if len(value.get_secret_value()) < _MIN_KEY_LENGTH:
            raise ValueError(f"must have at least {_MIN_KEY_LENGTH} characters")
        return value
