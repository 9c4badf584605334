"""Random calls of every method of KEDA's external scaler, as one tenant's KEDA instance sends them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random
from typing import Any

import grpc

from services.scaler.grpc.proto import externalscaler_pb2 as pb
from tests.fuzz.tenant_isolation.isolated_tenants import MONITORS, NAMESPACES, IsolatedTenant, Names

METHODS = {method.name: method for method in pb.DESCRIPTOR.services_by_name["ExternalScaler"].methods}


@dataclass(frozen=True)
class Call:
    """One call but for the names that differ between tenants."""

    method: str
    namespace: str
    metadata: dict[str, str]
    metric: str

    async def send(self, stub: Any, names: Names, patience: float = 5.0) -> tuple[str, str]:
        """(Code, answer or refusal); of a stream the first answer, or that none came within `patience` seconds."""
        metadata = {key: names.into(value) for key, value in self.metadata.items()}
        ref = pb.ScaledObjectRef(name="worker", namespace=self.namespace, scalerMetadata=metadata)
        request = pb.GetMetricsRequest(scaledObjectRef=ref, metricName=self.metric)
        method = METHODS[self.method]
        given = ref if method.input_type.name == "ScaledObjectRef" else request
        try:
            answer = getattr(stub, self.method)(given, timeout=10)
            return "OK", str(await (_first(answer, patience) if method.server_streaming else answer))
        except grpc.aio.AioRpcError as refused:
            return refused.code().name, refused.details() or ""


async def _first(stream: Any, patience: float) -> Any:
    """A stream that has nothing to say stays open."""
    reading = asyncio.ensure_future(stream.read())
    done, _ = await asyncio.wait([reading], timeout=patience)
    stream.cancel()
    await asyncio.wait([reading])
    return reading.result() if done else "silent"


class RandomCalls:
    """Calls of one tenant's KEDA, with names of its own and of another."""

    def __init__(self, random: Random, mine: IsolatedTenant, theirs: IsolatedTenant) -> None:
        self._random = random
        self._marks = (mine.mark, theirs.mark)

    def next(self) -> Call:
        """One call."""
        random = self._random
        metadata = self._metadata()
        if random.randrange(2):
            metadata["tenant"] = "{tenant}"
        namespace = random.choice((*NAMESPACES * 3, "nowhere", "*", "default", ""))
        metric = random.choice(("s0-orders", "logs", "s1-orders", metadata.get("serviceType", "x")))
        return Call(random.choice(list(METHODS)), namespace, metadata, metric)

    def _metadata(self) -> dict[str, str]:
        random = self._random
        if random.randrange(3):
            named = (*MONITORS * 2, "{only}", "{only}", "orders,logs", "orders,{only}", "order", "none", "O!")
            return {"serviceType": random.choice(named)}
        inline = {
            "cluster": random.choice(("main", "spare", "{only}")),
            "consumerGroup": random.choice(("readers", "writers")),
            "topic": random.choice(MONITORS),
            "bootstrapServers": f"{random.choice(self._marks)}.invalid:9092",
            "lagThreshold": random.choice(("10", "x", "500")),
        }
        return {name: text for name, text in inline.items() if random.randrange(4)}
