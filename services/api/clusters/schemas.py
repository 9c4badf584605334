"""Bodies of clusters. Secrets go in and never come out."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from services.api.clusters.security import SECRET_NAMES
from services.api.schemas import ApiSchema, Name, Scalar, Server, StateOut, WarningOut, split_list


class ClusterIn(ApiSchema):
    """A Kafka cluster as it shall be."""

    name: Name | None = Field(default=None, examples=["main"], description="May be left out where the URL names it.")
    bootstrap_servers: Annotated[list[Server], BeforeValidator(split_list), Field(min_length=1, max_length=64)] = Field(
        examples=[["kafka-0.kafka:9092", "kafka-1.kafka:9092"]]
    )
    security: dict[str, Scalar] = Field(
        default_factory=dict,
        examples=[{"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", "username": "lagscale"}],
        description="`protocol`, `mechanism`, `username`, `ca`, `certificate`, `verifyHostname`, and what a mechanism "
        "needs; or KEDA's spellings `sasl`, `tls`, `username`, `ca`, `cert` and so on.",
    )
    secrets: dict[str, str | dict[str, str] | None] | None = Field(
        default=None,
        examples=[{"password": "correct-horse-battery"}, {"password": {"file": "kafka/password"}}],
        description="`password`, `key`, `keyPassword`, `awsAccessKeyID`, `awsSecretAccessKey`, `awsSessionToken`: texts, "
        "encrypted and never shown; or references to a file or a variable of the tenant. Left out: as before; empty: "
        "removed.",
        json_schema_extra={"writeOnly": True, "propertyNames": {"enum": list(SECRET_NAMES)}},
    )
    properties: dict[str, Scalar] = Field(
        default_factory=dict,
        examples=[{"socket.timeout.ms": 10000}],
        description="Properties of the Kafka client, by librdkafka's names; an allow list.",
    )


class ClusterOut(ApiSchema):
    """A Kafka cluster. Of its secrets only whether any are stored is shown, and where others stand."""

    name: str = Field(examples=["main"])
    bootstrap_servers: list[str] = Field(examples=[["kafka-0.kafka:9092", "kafka-1.kafka:9092"]])
    security: dict[str, Any] = Field(examples=[{"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512"}])
    has_secrets: bool
    secret_references: dict[str, dict[str, str]] = Field(
        default_factory=dict, examples=[{"password": {"file": "kafka/password"}}]
    )
    properties: dict[str, str | int | bool] = Field(default_factory=dict, examples=[{"socket.timeout.ms": 10000}])
    state: StateOut | None = Field(default=None, description="Null until the scraper has asked the cluster.")
    created_at: datetime
    updated_at: datetime
    version: int = Field(examples=[1])
    warnings: list[WarningOut] = Field(default_factory=list, description="Of a look at it when it is registered.")
