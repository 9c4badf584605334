"""How the demo speaks to the running product: as KEDA over gRPC, as an administrator over REST, as Kafka's clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import grpc
import httpx
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from services.scaler.proto import externalscaler_pb2 as wire
from services.scaler.proto.externalscaler_pb2_grpc import ExternalScalerStub

TENANT, CLUSTER, MONITOR, NAMESPACE = "demo", "local", "orders", "demo"
TOPIC, GROUP, PARTITIONS = "orders", "order-workers", 3
_CALL_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What KEDA would make of one poll: value and activity, or the error that it would show as an event."""

    value: float | None
    active: bool | None
    error: str = ""


class Keda:
    """The three calls of KEDA's polling loop, really made."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(address)
        self._stub = ExternalScalerStub(self._channel)
        self._object = wire.ScaledObjectRef(
            name="order-workers",
            namespace=NAMESPACE,
            scalerMetadata={"serviceType": MONITOR, "scalerAddress": address},
        )

    def spec(self) -> tuple[str, float]:
        """Metric name and target of `GetMetricSpec`."""
        metric = self._stub.GetMetricSpec(self._object, timeout=_CALL_SECONDS).metricSpecs[0]
        return metric.metricName, metric.targetSizeFloat

    def poll(self, metric: str) -> Answer:
        """`GetMetrics`, then `IsActive`, as KEDA orders them."""
        try:
            request = wire.GetMetricsRequest(scaledObjectRef=self._object, metricName=f"s0-{metric}")
            value = self._stub.GetMetrics(request, timeout=_CALL_SECONDS).metricValues[0]
            active = self._stub.IsActive(self._object, timeout=_CALL_SECONDS).result
        except grpc.RpcError as error:
            return Answer(None, None, f"{error.code().name}: {error.details()}")
        return Answer(value.metricValueFloat or float(value.metricValue), active)

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()


class Admin:
    """Registers what is to be measured, and asks for verdicts."""

    def __init__(self, url: str, key: str) -> None:
        self._http = httpx.Client(base_url=f"{url}/v1", headers={"Authorization": f"Bearer {key}"}, timeout=10)

    def register(self, bootstrap: str, policy: dict[str, Any]) -> None:
        """Tenant, binding, cluster and monitor."""
        self._post("/tenants", {"name": TENANT})
        self._post(f"/tenants/{TENANT}/bindings", {"namespace": NAMESPACE})
        self._post(f"/tenants/{TENANT}/clusters", {"name": CLUSTER, "bootstrapServers": [bootstrap]})
        monitor = {"name": MONITOR, "cluster": CLUSTER, "consumerGroup": GROUP, "topics": [TOPIC], "policy": policy}
        self._post(f"/tenants/{TENANT}/monitors", monitor)

    def verdict(self) -> dict[str, Any]:
        """The monitor's verdict with its evidence."""
        return self._get(f"/tenants/{TENANT}/monitors/{MONITOR}/verdict")

    def newest_round(self) -> dict[str, Any] | None:
        """The newest round of samples, None before the first."""
        rounds = self._get(f"/tenants/{TENANT}/monitors/{MONITOR}/samples?limit=1")["items"]
        return rounds[0] if rounds else None

    def _post(self, path: str, body: dict[str, Any]) -> None:
        answer = self._http.post(path, json=body)
        if answer.is_error:
            raise RuntimeError(f"POST {path}: {answer.text}")

    def _get(self, path: str) -> dict[str, Any]:
        answer = self._http.get(path)
        if answer.is_error:
            raise RuntimeError(f"GET {path}: {answer.text}")
        return dict(answer.json())


class Kafka:
    """A topic, its producer, and a worker that reads and commits without joining the group."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})

    def create_topic(self) -> None:
        """The topic, and the group's first commits, so that there is a lag to speak of."""
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        for future in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).values():
            future.result(15)
        self.consume_all()

    def produce(self, messages: int) -> None:
        """So many messages of 64 bytes, spread over the partitions; returns when all are stored."""
        for number in range(messages):
            self._producer.produce(TOPIC, b"x" * 64, partition=number % PARTITIONS)
            self._producer.poll(0)
        self._producer.flush(15)

    def consume_all(self) -> int:
        """Read to the end and commit; the number of messages read."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        ends = {one.partition: consumer.get_watermark_offsets(one, timeout=10)[1] for one in partitions}
        starts = {one.partition: max(one.offset, 0) for one in consumer.committed(partitions, timeout=10)}
        consumer.assign([TopicPartition(TOPIC, number, start) for number, start in starts.items()])
        wanted = sum(ends.values()) - sum(starts.values())
        read = 0
        while read < wanted:
            read += len(consumer.consume(min(1000, wanted - read), timeout=5))
        consumer.commit(
            offsets=[TopicPartition(TOPIC, number, end) for number, end in ends.items()], asynchronous=False
        )
        consumer.close()
        return read
