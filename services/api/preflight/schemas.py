"""Answers of a preflight: each address step by step, each right, and what to do about what is wrong."""

from __future__ import annotations

from pydantic import Field

from services.api.schemas import ApiSchema, WarningOut


class ProbeStepOut(ApiSchema):
    """One step."""

    outcome: str = Field(examples=["ok"], description="`ok`, `failed`, `not_tried` or `not_used`.")
    text: str = Field(default="", examples=["Authentication failed; check mechanism, user name and password."])


class AddressCheckOut(ApiSchema):
    """A bootstrap server, or a listener that a broker advertises, step by step."""

    address: str = Field(examples=["kafka-0.kafka:9092"])
    broker: int | None = Field(default=None, description="The broker that advertises it; null for a bootstrap server.")
    resolved: ProbeStepOut = Field(description="The name leads to addresses that may be connected to.")
    connected: ProbeStepOut = Field(description="A TCP connection.")
    tls: ProbeStepOut
    authenticated: ProbeStepOut = Field(description="SASL.")
    answered: ProbeStepOut = Field(description="A first request was answered.")


class AccessCheckOut(ApiSchema):
    """One right on one resource."""

    permission: str = Field(
        examples=["describe_topic"],
        description="`describe_cluster`, `describe_topic`, `list_offsets`, `describe_group` or `read_commits`.",
    )
    kind: str = Field(examples=["topic"], description="`cluster`, `topic` or `group`.")
    name: str = Field(examples=["orders"], description="Empty for the cluster, and where no monitor names one yet.")
    status: str = Field(examples=["denied"], description="`granted`, `denied` or `not_known`.")
    text: str = ""
    grant: str = Field(default="", description="The command by which the cluster's administrators grant it.")


class PreflightOut(ApiSchema):
    """What a look at the cluster found. It changes nothing, and is not kept."""

    cluster: str = Field(examples=["main"])
    ok: bool = Field(description="Everything could be tried, and nothing is wrong.")
    problem: str = Field(
        default="", examples=["authentication_failed"], description="A named state, where no more could be asked."
    )
    text: str = ""
    addresses: list[AddressCheckOut]
    advertised: list[AddressCheckOut]
    access_checks: list[AccessCheckOut]
    version: str | None = Field(
        default=None, examples=["4.1"], description="The least version of Kafka that knows what these brokers know."
    )
    group_types: list[str] = Field(examples=[["classic", "consumer"]], description="Kinds of groups the brokers know.")
    warnings: list[WarningOut] = Field(description="What is wrong, in short; also told when a cluster is registered.")
    seconds: float = Field(examples=[0.4])
