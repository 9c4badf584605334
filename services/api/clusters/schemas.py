"""Request and response bodies of clusters and their preflights. Secrets are accepted and never returned."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from lagscale.kafka.security import display_name
from lagscale.store.registry.session import Row
from services.api.clusters.mechanisms import SECRET_FIELDS
from services.api.schemas import ApiSchema, Name, Scalar, Server, StateOut, WarningOut, serialize_state, split_list


class ClusterIn(ApiSchema):
    """Desired state of a Kafka cluster."""

    name: Name | None = Field(default=None, examples=["main"], description="Optional where the URL names it.")
    bootstrap_servers: Annotated[list[Server], BeforeValidator(split_list), Field(min_length=1, max_length=64)] = Field(
        examples=[["kafka-0.kafka:9092", "kafka-1.kafka:9092"]]
    )
    security: dict[str, Scalar] = Field(
        default_factory=dict,
        examples=[{"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", "username": "lagscale"}],
        description="`protocol`, `mechanism`, `username`, `ca`, `certificate`, `verifyHostname`, and the fields of the "
        "mechanism; or KEDA's names `sasl`, `tls`, `username`, `ca`, `cert` and so on.",
    )
    secrets: dict[str, str | dict[str, str] | None] | None = Field(
        default=None,
        examples=[{"password": "correct-horse-battery"}, {"password": {"file": "kafka/password"}}],
        description="`password`, `key`, `keyPassword`, `awsAccessKeyID`, `awsSecretAccessKey`, `awsSessionToken`: strings, "
        "stored encrypted and never returned; or references to a file or an environment variable of the tenant. Omitted: "
        "unchanged; empty: removed.",
        json_schema_extra={"writeOnly": True, "propertyNames": {"enum": list(SECRET_FIELDS)}},
    )
    properties: dict[str, Scalar] = Field(
        default_factory=dict,
        examples=[{"socket.timeout.ms": 10000}],
        description="Kafka client properties by librdkafka's names; only those of an allow list.",
    )


class ClusterOut(ApiSchema):
    """A Kafka cluster. Secrets are not returned; only whether any are stored, and references."""

    name: str = Field(examples=["main"])
    bootstrap_servers: list[str] = Field(examples=[["kafka-0.kafka:9092", "kafka-1.kafka:9092"]])
    security: dict[str, Any] = Field(examples=[{"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512"}])
    has_secrets: bool
    secret_references: dict[str, dict[str, str]] = Field(
        default_factory=dict, examples=[{"password": {"file": "kafka/password"}}]
    )
    properties: dict[str, str | int | bool] = Field(default_factory=dict, examples=[{"socket.timeout.ms": 10000}])
    state: StateOut | None = Field(default=None, description="Null until the scraper has polled the cluster.")
    created_at: datetime
    updated_at: datetime
    version: int = Field(examples=[1])
    warnings: list[WarningOut] = Field(default_factory=list, description="Of the preflight at registration.")


class ProbeStepOut(ApiSchema):
    """One step of a probe."""

    outcome: str = Field(examples=["ok"], description="`ok`, `failed`, `not_tried` or `not_used`.")
    text: str = Field(default="", examples=["Authentication failed; check mechanism, user name and password."])


class AddressCheckOut(ApiSchema):
    """Probe of a bootstrap server, or of a listener that a broker advertises."""

    address: str = Field(examples=["kafka-0.kafka:9092"])
    broker: int | None = Field(default=None, description="Broker that advertises it; null for a bootstrap server.")
    resolved: ProbeStepOut = Field(description="The name resolves to addresses that are allowed.")
    connected: ProbeStepOut = Field(description="TCP connection.")
    tls: ProbeStepOut
    authenticated: ProbeStepOut = Field(description="SASL.")
    answered: ProbeStepOut = Field(description="Response to a first request.")


class AccessCheckOut(ApiSchema):
    """One permission on one resource."""

    permission: str = Field(
        examples=["describe_topic"],
        description="`describe_cluster`, `describe_topic`, `list_offsets`, `describe_group` or `read_commits`.",
    )
    resource_type: str = Field(examples=["topic"], description="`cluster`, `topic` or `group`.")
    name: str = Field(
        examples=["orders"], description="Empty for the cluster, and while no monitor uses such a resource."
    )
    status: str = Field(examples=["denied"], description="`granted`, `denied` or `unknown`.")
    text: str = ""
    grant: str = Field(default="", description="Command that grants it, for the administrators of the cluster.")


class PreflightOut(ApiSchema):
    """Result of a preflight. It changes nothing, and is not stored."""

    cluster: str = Field(examples=["main"])
    ok: bool = Field(description="Every check was possible and succeeded.")
    problem: str = Field(
        default="",
        examples=["authentication_failed"],
        description="Named error that ended the preflight; empty without one.",
    )
    text: str = ""
    addresses: list[AddressCheckOut]
    advertised: list[AddressCheckOut]
    access_checks: list[AccessCheckOut]
    version: str | None = Field(
        default=None, examples=["4.1"], description="Lowest version of Kafka that supports what these brokers support."
    )
    group_types: list[str] = Field(
        examples=[["classic", "consumer"]], description="Group types that the brokers support."
    )
    warnings: list[WarningOut] = Field(description="Summary of problems; also returned when a cluster is registered.")
    seconds: float = Field(examples=[0.4])


def serialize_cluster(row: Row) -> ClusterOut:
    """A cluster's row as a body, without its secrets."""
    return ClusterOut.from_row(
        row,
        bootstrap_servers=row["bootstrap"],
        security={display_name(name): value for name, value in row["security"].items()},
        has_secrets=row["secrets"] is not None,
        secret_references={display_name(name): reference for name, reference in row["secret_references"].items()},
        state=serialize_state(row, "state_"),
        warnings=[],
    )
