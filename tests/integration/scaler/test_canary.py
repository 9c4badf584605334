"""Secrets in a trigger or a call appear in no answer, log, metric or row of the scaler."""

from __future__ import annotations

import urllib.request
from pathlib import Path
from typing import Any

import grpc
import psycopg
import pytest

from lagscale.store.registry.tables import metadata as tables
from services.scaler.grpc.proto import externalscaler_pb2 as pb
from services.scaler.grpc.proto import externalscaler_pb2_grpc as pb_grpc
from services.scaler.triggers.metadata import EXTERNAL_SCALER_KEYS, IGNORED_KEYS
from tests.integration.scaler.test_process import Kafka, Starting, kafka, replica, until

__all__ = ["kafka", "replica"]
pytestmark = pytest.mark.integration

CANARY = "C4nary-6rpc-in-the-trigger"
#: `scalerAddress` is not a secret, but it is not needed either.
CARRIED = dict.fromkeys((*IGNORED_KEYS, *EXTERNAL_SCALER_KEYS), CANARY) | {"excludePersistentLag": "false"}
SENT = (("authorization", f"Bearer {CANARY}"), ("x-api-key", CANARY), ("cookie", CANARY))
INLINE = {"cluster": "main", "consumerGroup": "readers", "topic": "orders", "tenant": ""}
#: Triggers by name, inline, invalid and without a binding; each contains the secrets.
TRIGGERS: tuple[dict[str, str], ...] = (
    {"serviceType": "orders"},
    {"serviceType": "missing"},
    INLINE,
    INLINE | {"lagThreshold": "many"},
    INLINE | {"cluster": "nowhere"},
    {"serviceType": "orders", "pasword": CANARY},
    {},
)


async def call_method(stub: Any, ref: Any, method: str) -> str:
    request = pb.GetMetricsRequest(scaledObjectRef=ref, metricName="orders") if method == "GetMetrics" else ref
    call = getattr(stub, method)(request, timeout=10, metadata=SENT)
    try:
        answer = str(await call)
    except grpc.aio.AioRpcError as error:
        answer = f"{error.code().name} {error.details()} {error.debug_error_string()}"
    return f"{answer} {await call.initial_metadata()} {await call.trailing_metadata()}"


def stored(url: str) -> str:
    with psycopg.connect(url) as connection:
        return "".join(
            str(connection.execute(f'select t::text from "{name}" as t').fetchall())  # type: ignore[call-overload]
            for name in tables.tables
        )


def page(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
        return str(answer.read().decode())


async def test_secrets_of_a_trigger_appear_nowhere(
    kafka: Kafka, replica: Starting, shared_url: str, tmp_path: Path
) -> None:
    kafka.register("orders")
    kafka.measure("orders", 0, 700, 700, 700, 700, 700)
    with psycopg.connect(shared_url) as connection:
        connection.execute("update tenant set auto_register = true where id = %s", [kafka.tenant])
    scaler = replica(LAGSCALE_LOG_LEVEL="debug")
    await until(lambda: scaler.probe("/readyz") == 200)
    answers = []
    async with grpc.aio.insecure_channel(f"127.0.0.1:{scaler.grpc_port}") as channel:
        stub = pb_grpc.ExternalScalerStub(channel)
        for trigger in TRIGGERS:
            for namespace in (kafka.namespace, "nobodys"):
                given = CARRIED | {name: text for name, text in trigger.items() if text}
                ref = pb.ScaledObjectRef(name="x", namespace=namespace, scalerMetadata=given)
                answers += [
                    await call_method(stub, ref, method) for method in ("IsActive", "GetMetricSpec", "GetMetrics")
                ]
    # All of these cases were exercised.
    answers_text = "".join(answers)
    assert "metricValueFloat: 100" in answers_text
    for code in ("NOT_FOUND", "INVALID_ARGUMENT"):
        assert code in answers_text, answers
    shown = page(scaler.http_port, "/metrics") + page(scaler.http_port, "/healthz")
    rows = stored(shared_url)
    assert "monitor.create" in rows
    scaler.process.terminate()
    scaler.process.wait(20)
    logs = (tmp_path / "scaler-0.log").read_text()
    assert "call_rejected" in logs
    for place, text in (("answers", answers_text), ("logs", logs), ("pages", shown), ("store", rows)):
        found = text.find(CANARY)
        assert found < 0, f"{CANARY} appears in {place}: {text[max(0, found - 300) :][:700]}"
