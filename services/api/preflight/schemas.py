"""Response body of a preflight: each address step by step, each permission, and remediations."""

from __future__ import annotations

from pydantic import Field

from services.api.schemas import ApiSchema, WarningOut


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
