"""The gRPC server: options, health, reflection, graceful shutdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from lagscale.settings import split_address
from services.scaler import deadlines
from services.scaler.grpc.proto import externalscaler_pb2 as pb
from services.scaler.grpc.proto import externalscaler_pb2_grpc as pb_grpc
from services.scaler.grpc.servicer import Servicer
from services.scaler.grpc.streams import ConnectionAges

SERVICE: Final = pb.DESCRIPTOR.services_by_name["ExternalScaler"].full_name
_MAX_MESSAGE_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Listener:
    """An address as `host:port`, and its credentials; None for plain text."""

    address: str
    credentials: Any = None


class GrpcServer:
    """Serves the external scaler contract, gRPC health and reflection."""

    def __init__(self, servicer: Servicer, ages: ConnectionAges, *, reuse_address: bool) -> None:
        self._server = grpc.aio.server(options=_options(ages, reuse_address))
        self._health = health.aio.HealthServicer()
        pb_grpc.add_ExternalScalerServicer_to_server(servicer, self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection((SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME), self._server)

    async def start(self, listeners: Sequence[Listener]) -> list[int]:
        """Start serving at every address; returns the ports, in order.

        Raises:
            OSError: an address is in use, or gRPC rejects a certificate.
        """
        ports = [self._listen(listener) for listener in listeners]
        await self._server.start()
        return ports

    def _listen(self, listener: Listener) -> int:
        address, credentials = listener.address, listener.credentials
        try:
            port: int = (
                self._server.add_insecure_port(address)
                if credentials is None
                else self._server.add_secure_port(address, credentials)
            )
        except RuntimeError as error:
            raise OSError(f"cannot listen on {address}") from error
        return port

    async def set_serving(self, up: bool) -> None:
        """Set gRPC health, which follows the availability of the store."""
        serving = health_pb2.HealthCheckResponse.SERVING if up else health_pb2.HealthCheckResponse.NOT_SERVING
        for name in ("", SERVICE):
            await self._health.set(name, serving)

    async def drain(self) -> None:
        """Report NOT_SERVING from now on, and continue serving."""
        await self._health.enter_graceful_shutdown()

    async def stop(self, grace: float) -> None:
        """Accept no new calls, and give running ones `grace` seconds to end."""
        await self._server.stop(grace)


def grpc_address(listen: str, port: str | None = None) -> str:
    """The listening address in gRPC's form; `port` replaces its port.

    Raises:
        ValueError: `listen` is not an address.
    """
    host, given = split_address(listen)
    host = f"[{host}]" if ":" in host else host or "[::]"
    return f"{host}:{port or given}"


def _options(ages: ConnectionAges, reuse_address: bool) -> list[tuple[str, Any]]:
    return [
        ("grpc.so_reuseport", int(reuse_address)),
        ("grpc.max_connection_age_ms", int(ages.connection * 1000)),
        ("grpc.max_connection_age_grace_ms", int(ages.grace * 1000)),
        ("grpc.keepalive_time_ms", deadlines.KEEPALIVE_MS),
        ("grpc.keepalive_timeout_ms", deadlines.KEEPALIVE_TIMEOUT_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", deadlines.MIN_PING_INTERVAL_MS),
        ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
    ]
