"""Ways to register monitors: environment variables, trigger metadata, a file of objects."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

import grpc
import httpx
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from devstack.broker import Broker
from devstack.clients import Kafka, KedaAnswer, KedaClient
from devstack.database import Database
from devstack.server import free_port
from devstack.stack import Stack
from tests.e2e.system import FACTOR, System, is_active_with, is_calm, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]


def test_variables_alone_start_a_system_with_one_monitor(database: Database, broker: Broker, tmp_path: Path) -> None:
    topic, group = f"orders-{uuid.uuid4().hex[:8]}", f"group-{uuid.uuid4().hex[:8]}"
    kafka = Kafka(broker.address)
    kafka.create_topic(topic, 2)
    kafka.consume_all(topic, group)
    port = free_port()
    variables = {
        "KAFKA_BROKERS": broker.address,
        "KAFKA_TOPIC": topic,
        "KAFKA_GROUP_ID": group,
        "LAG_THRESHOLD": "100",
        "SUSTAIN_SECONDS": "4",
        "SAMPLING_INTERVAL": "1",
        "WINDOW_SIZE": "5",
        "GRPC_PORT": str(port),
    }
    name = f"one_{uuid.uuid4().hex[:8]}"
    stack = Stack(database.create_database(name), tmp_path, extra=variables)
    try:
        stack.start()
        keda = KedaClient(f"127.0.0.1:{port}", "anywhere", {"serviceType": topic})
        assert keda.specs() == {topic: 100.0}
        kafka.produce(topic, 1_000, 2)
        until(lambda: keda.poll(topic), is_active_with(200.0), 60)
        keda.close()
    finally:
        stack.stop()
        database.drop_database(name)


def test_inline_metadata_registers_for_a_tenant_that_allows_it(system: System) -> None:
    tenant = system.tenant(autoRegister=True)
    topic, group = f"inline-{uuid.uuid4().hex[:8]}", f"group-{uuid.uuid4().hex[:8]}"
    system.kafka.create_topic(topic, 2)
    system.kafka.consume_all(topic, group)
    metadata = {
        "bootstrapServers": system.bootstrap,
        "topic": topic,
        "consumerGroup": group,
        "lagThreshold": "100",
        "sustainSeconds": "3",
        "samplingInterval": "1",
        "windowSize": "5",
    }
    keda = system.keda(tenant, metadata)
    ((metric, target),) = system.await_specs(keda).items()
    assert target == 100.0

    first = keda.poll(metric)
    assert first.error.startswith("FAILED_PRECONDITION")
    until(lambda: keda.poll(metric), is_calm, 60)
    system.kafka.produce(topic, 1_000, 2)
    until(lambda: keda.poll(metric), is_active_with(200.0), 60)
    closed = system.keda(system.tenant(), metadata)
    assert closed.poll(metric).error.startswith("NOT_FOUND")


def test_one_file_registers_eleven_services_and_serviceType_names_them(system: System, tmp_path: Path) -> None:
    tenant = "lakerunner"
    text = (ROOT / "examples" / "eleven-services.yaml").read_text()
    # The file unchanged, but ten times faster: nothing is inactive until the samples span 120 s.
    for old, new in {
        "sustainSeconds: 120": f"sustainSeconds: {120 // FACTOR}",
        "samplingInterval: 10": f"samplingInterval: {10 // FACTOR}",
        "kafka.kafka.svc:9092": system.bootstrap,
    }.items():
        assert old in text
        text = text.replace(old, new)
    file = tmp_path / "eleven-services.yaml"
    file.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "services.cli", "apply", "-f", str(file)],
        env={
            **os.environ,
            "LAGSCALE_API_URL": system.stack.addresses.api_url,
            "LAGSCALE_API_KEY": system.stack.addresses.admin_key,
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    monitors = system.admin.get(f"/tenants/{tenant}/monitors?limit=50")["items"]
    assert len(monitors) == 11
    namespace = system.admin.get(f"/tenants/{tenant}/bindings")["items"][0]["namespace"]
    logs = next(one for one in monitors if one["name"] == "ingest-logs")
    system.kafka.create_topic(logs["topics"][0], 1)
    system.kafka.consume_all(logs["topics"][0], logs["consumerGroup"])

    keda = system.keda(namespace, {"serviceType": "ingest-logs"})
    assert list(system.await_specs(keda)) == ["ingest-logs"]
    until(lambda: keda.poll("ingest-logs"), lambda answer: answer.value == 0.0, 90)
    both = system.keda(namespace, {"serviceType": "boxer-compact-logs,boxer-rollup-metrics"})
    assert list(both.specs()) == ["boxer-compact-logs", "boxer-rollup-metrics"]
    near_miss = system.keda(namespace, {"serviceType": "ingest-log"}).poll("ingest-log").error
    assert near_miss.startswith("NOT_FOUND")
    assert "ingest-logs" in near_miss


def test_a_caller_without_the_proto_finds_and_calls_the_service_by_reflection(system: System) -> None:
    group = system.watch({"samplingInterval": 1, "sustainSeconds": 2})
    channel = system.close_later(grpc.insecure_channel(system.stack.addresses.grpc))
    database = ProtoReflectionDescriptorDatabase(channel)
    assert "externalscaler.ExternalScaler" in database.get_services()
    pool = DescriptorPool(database)
    method = pool.FindServiceByName("externalscaler.ExternalScaler").FindMethodByName("IsActive")
    request = GetMessageClass(method.input_type)(
        name="any", namespace=group.tenant, scalerMetadata={"serviceType": group.monitor}
    )
    call = channel.unary_unary(
        "/externalscaler.ExternalScaler/IsActive",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )

    def poll() -> KedaAnswer:
        try:
            return KedaAnswer(0.0, call(request, timeout=5).result)
        except grpc.RpcError as error:
            return KedaAnswer(None, None, str(error.code()))

    until(poll, is_calm, 60)


def test_errors_of_the_api_name_the_field_and_the_way_out(system: System) -> None:
    tenant = system.tenant()
    body = {
        "name": "m",
        "cluster": "main",
        "consumerGroup": "g",
        "topics": ["t"],
        "policy": {"lagThreshold": 0, "windowSize": 3, "sustainSeconds": 120},
    }
    answer = system.admin.http.post(f"/tenants/{tenant}/monitors", json=body)
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert answer.headers["content-type"] == "application/problem+json"
    fields = {error["field"] for error in answer.json()["errors"]}
    assert fields == {"policy.lagThreshold", "policy.windowSize"}
