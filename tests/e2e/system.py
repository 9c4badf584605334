"""A running Lagscale for the end-to-end tests: configured over REST, polled over gRPC, fed through Kafka."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import grpc

from devstack.clients import Admin, Kafka, KedaAnswer, KedaClient
from devstack.server import wait_until
from devstack.stack import Stack

#: Scenarios of 120 s and a sampling interval of 10 s run in a tenth of the time.
FACTOR = 10


class SupportsClose(Protocol):
    """A resource that must be closed."""

    def close(self) -> None:
        """Close it."""
        ...


Closable = TypeVar("Closable", bound=SupportsClose)


@dataclass(frozen=True, slots=True)
class Group:
    """A registered monitor with its topic and group, and its KEDA client."""

    tenant: str
    monitor: str
    topic: str
    group: str
    partitions: int
    keda: KedaClient

    @property
    def path(self) -> str:
        """The monitor's path under `/v1`."""
        return f"/tenants/{self.tenant}/monitors/{self.monitor}"

    def poll(self) -> KedaAnswer:
        """One poll as KEDA does it."""
        return self.keda.poll(self.monitor)


class System:
    """A started stack on one broker."""

    def __init__(self, stack: Stack, bootstrap: str) -> None:
        self.stack = stack
        self.bootstrap = bootstrap
        self.admin = Admin(stack.addresses.api_url, stack.addresses.admin_key)
        self.kafka = Kafka(bootstrap)
        self._closing: list[SupportsClose] = [self.admin]

    def close(self) -> None:
        """Close all connections that were opened here."""
        for one in self._closing:
            one.close()

    def close_later(self, one: Closable) -> Closable:
        """Register a resource to be closed at the end."""
        self._closing.append(one)
        return one

    def tenant(self, **settings: object) -> str:
        """Create a tenant with a cluster `main`, bound to a namespace with the tenant's name."""
        name = f"t-{uuid.uuid4().hex[:12]}"
        self.admin.post("/tenants", {"name": name, **settings})
        self.admin.post(f"/tenants/{name}/bindings", {"namespace": name})
        self.admin.post(f"/tenants/{name}/clusters", {"name": "main", "bootstrapServers": [self.bootstrap]})
        return name

    def keda(self, tenant: str, metadata: Mapping[str, str]) -> KedaClient:
        """A KEDA client for a ScaledObject in the tenant's namespace."""
        return self.close_later(KedaClient(self.stack.addresses.grpc, tenant, metadata))

    def await_specs(self, keda: KedaClient) -> dict[str, float]:
        """The metric specs, once the scaler has loaded the registration."""
        specs: dict[str, float] = {}

        def is_registered() -> bool:
            try:
                specs.update(keda.specs())
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.NOT_FOUND:
                    raise
                return False
            return True

        wait_until(is_registered, 30, "the registration did not reach the scaler")
        return specs

    def watch(
        self,
        policy: Mapping[str, Any],
        *,
        partitions: int = 3,
        topic: str | None = None,
        group: str | None = None,
        committed: bool = True,
    ) -> Group:
        """Create a topic, a group (with committed offsets by default), and a monitor for them."""
        mark = uuid.uuid4().hex[:8]
        topic, group = topic or f"topic-{mark}", group or f"group-{mark}"
        tenant, monitor = self.tenant(), f"monitor-{mark}"
        self.kafka.create_topic(topic, partitions)
        if committed:
            self.kafka.consume_all(topic, group)
        body = {"name": monitor, "cluster": "main", "consumerGroup": group, "topics": [topic], "policy": dict(policy)}
        self.admin.post(f"/tenants/{tenant}/monitors", body)
        keda = self.keda(tenant, {"serviceType": monitor})
        self.await_specs(keda)
        return Group(tenant, monitor, topic, group, partitions, keda)

    def verdict(self, group: Group) -> dict[str, Any]:
        """The verdict with its evidence, over REST."""
        return self.admin.get(f"{group.path}/verdict")


def until(
    poll: Callable[[], KedaAnswer],
    condition: Callable[[KedaAnswer], bool],
    seconds: float,
    never: Callable[[KedaAnswer], bool] = lambda _: False,
) -> list[KedaAnswer]:
    """Poll until an answer meets the condition; returns all answers.

    Raises:
        AssertionError: an answer met `never`, or none met the condition in time.
    """
    polled: list[KedaAnswer] = []
    deadline = time.monotonic() + seconds

    def is_met() -> bool:
        polled.append(poll())
        assert not never(polled[-1]), f"forbidden answer: {polled[-1]}; before: {polled[-4:-1]}"
        assert condition(polled[-1]) or time.monotonic() < deadline, f"not within {seconds:g} s; last: {polled[-3:]}"
        return condition(polled[-1])

    wait_until(is_met, seconds + 10, "the condition was not met")
    return polled


def is_calm(answer: KedaAnswer) -> bool:
    """Whether the answer is 0 and inactive."""
    return answer == KedaAnswer(0.0, False)


def is_active_with(value: float) -> Callable[[KedaAnswer], bool]:
    """Whether the answer is this value, and active."""
    return lambda answer: answer == KedaAnswer(value, True)
