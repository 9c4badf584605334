"""Clients of the running product for the demo and the end-to-end tests: KEDA over gRPC, REST administrator, Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import grpc
import httpx
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from confluent_kafka.cimpl import NewTopic
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from services.scaler.grpc.proto import externalscaler_pb2 as wire
from services.scaler.grpc.proto.externalscaler_pb2_grpc import ExternalScalerStub

#: KEDA sets no deadline; this one detects a call that hangs.
CALL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class KedaAnswer:
    """Result of one poll by KEDA: value and activity, or the error that KEDA reports as an event."""

    value: float | None
    active: bool | None
    error: str = ""


class KedaClient:
    """The three gRPC calls of KEDA's polling loop.

    Args:
        address: `host:port` of the scaler.
        namespace: of the ScaledObject.
        metadata: of its trigger.
    """

    def __init__(self, address: str, namespace: str, metadata: Mapping[str, str]) -> None:
        self._channel = grpc.insecure_channel(address)
        self.stub = ExternalScalerStub(self._channel)
        self.object = wire.ScaledObjectRef(
            name="workers", namespace=namespace, scalerMetadata={"scalerAddress": f"http://{address}", **metadata}
        )

    def specs(self) -> dict[str, float]:
        """Metric name -> target of `GetMetricSpec`."""
        answer = self.stub.GetMetricSpec(self.object, timeout=CALL_SECONDS)
        return {metric.metricName: metric.targetSizeFloat for metric in answer.metricSpecs}

    def poll(self, metric: str) -> KedaAnswer:
        """`GetMetrics`, then `IsActive`, in KEDA's order."""
        try:
            request = wire.GetMetricsRequest(scaledObjectRef=self.object, metricName=f"s0-{metric}")
            value = self.stub.GetMetrics(request, timeout=CALL_SECONDS).metricValues[0]
            active = self.stub.IsActive(self.object, timeout=CALL_SECONDS).result
        except grpc.RpcError as error:
            return KedaAnswer(None, None, f"{error.code().name}: {error.details()}")
        return KedaAnswer(value.metricValueFloat or float(value.metricValue), active)

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()


class Admin:
    """REST client of an administrator; paths are relative to `/v1`."""

    def __init__(self, url: str, key: str) -> None:
        self.http = httpx.Client(base_url=f"{url}/v1", headers={"Authorization": f"Bearer {key}"}, timeout=30)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create an object.

        Raises:
            RuntimeError: with the response of the API.
        """
        return self._request("POST", path, body)

    def put(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create or replace a named object."""
        return self._request("PUT", path, body)

    def get(self, path: str) -> dict[str, Any]:
        """Get an object."""
        return self._request("GET", path, None)

    def close(self) -> None:
        """Close the connections."""
        self.http.close()

    def _request(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        answer = self.http.request(method, path, json=body)
        if answer.is_error:
            raise RuntimeError(f"{method} {path}: {answer.text}")
        return dict(answer.json())


class Kafka:
    """Topics, their producer, and a worker that reads and commits without joining the group."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        self.admin = AdminClient({"bootstrap.servers": bootstrap})

    def create_topic(self, topic: str, partitions: int) -> None:
        """Create a topic and wait until every partition has a leader."""
        for future in self.admin.create_topics([NewTopic(topic, partitions, 1)]).values():
            future.result(15)
        ends = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)}
        _retry(lambda: [future.result(5) for future in self.admin.list_offsets(ends).values()])

    def produce(self, topic: str, messages: int, partitions: int) -> None:
        """Produce messages of 64 bytes to all partitions in turn and wait until all are stored."""
        for number in range(messages):
            self._producer.produce(topic, b"x" * 64, partition=number % partitions)
            self._producer.poll(0)
        if self._producer.flush(30):
            raise RuntimeError("the broker did not store all messages")

    def consume_all(self, topic: str, group: str) -> int:
        """Read to the end and commit; the number of messages read."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        try:
            return _drain(consumer, topic)
        finally:
            consumer.close()


#: The leader of a new topic and the coordinator of a new group are not available at once.
_retry = Retrying(
    retry=retry_if_exception_type(KafkaException), wait=wait_fixed(0.1), stop=stop_after_delay(60), reraise=True
)


def _drain(consumer: Consumer, topic: str) -> int:
    numbers = list(consumer.list_topics(topic, timeout=10).topics[topic].partitions)
    partitions = [TopicPartition(topic, number) for number in numbers]
    ends = {one.partition: consumer.get_watermark_offsets(one, timeout=10)[1] for one in partitions}
    committed = _retry(lambda: consumer.committed(partitions, timeout=10))
    starts = {one.partition: max(one.offset, 0) for one in committed}
    consumer.assign([TopicPartition(topic, number, start) for number, start in starts.items()])
    remaining_total = sum(ends.values()) - sum(starts.values())
    read = 0
    while read < remaining_total:
        read += len(consumer.consume(min(1000, remaining_total - read), timeout=10))
    end_offsets = [TopicPartition(topic, number, end) for number, end in ends.items()]
    _retry(lambda: consumer.commit(offsets=end_offsets, asynchronous=False))
    return read
