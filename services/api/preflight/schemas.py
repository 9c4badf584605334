"""Answers of a preflight: each address step by step, each right, and what to do about what is wrong."""

from __future__ import annotations

from pydantic import Field

from services.api.schemas import Payload, WarningOut


class StepOut(Payload):
    """One step."""

    outcome: str = Field(examples=["ok"], description="`ok`, `failed`, `not_tried` or `not_used`.")
    text: str = Field(
        default="", examples=["The broker refuses the credentials; check mechanism, user name and password."]
    )


class AddressOut(Payload):
    """A bootstrap server, or a listener that a broker advertises, step by step."""

    address: str = Field(examples=["kafka-0.kafka:9092"])
    broker: int | None = Field(default=None, description="The broker that advertises it; null for a bootstrap server.")
    resolved: StepOut = Field(description="The name leads to addresses that may be connected to.")
    connected: StepOut = Field(description="A TCP connection.")
    tls: StepOut
    authenticated: StepOut = Field(description="SASL.")
    answered: StepOut = Field(description="A first request was answered.")


class RightOut(Payload):
    """One right on one resource."""

    right: str = Field(
        examples=["describe_topic"],
        description="`describe_cluster`, `describe_topic`, `list_offsets`, `describe_group` or `read_commits`.",
    )
    kind: str = Field(examples=["topic"], description="`cluster`, `topic` or `group`.")
    name: str = Field(examples=["orders"], description="Empty for the cluster, and where no monitor names one yet.")
    holding: str = Field(examples=["denied"], description="`granted`, `denied` or `not_known`.")
    text: str = ""
    grant: str = Field(default="", description="The command by which the cluster's administrators grant it.")


class PreflightOut(Payload):
    """What a look at the cluster found. It changes nothing, and is not kept."""

    cluster: str = Field(examples=["main"])
    ok: bool = Field(description="Everything could be tried, and nothing is wrong.")
    problem: str = Field(
        default="", examples=["authentication_failed"], description="A named state, where no more could be asked."
    )
    text: str = ""
    addresses: list[AddressOut]
    advertised: list[AddressOut]
    rights: list[RightOut]
    version: str | None = Field(
        default=None, examples=["4.1"], description="The least version of Kafka that knows what these brokers know."
    )
    group_kinds: list[str] = Field(examples=[["classic", "consumer"]], description="Kinds of groups the brokers know.")
    warnings: list[WarningOut] = Field(description="What is wrong, in short; also told when a cluster is registered.")
    seconds: float = Field(examples=[0.4])
