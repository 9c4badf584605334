"""Two walled tenants, and the edges that they are asked through."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
import structlog
from cryptography import x509

from devstack.certificates import Authority, Request
from lagscale.kafka.addresses import ANY_ADDRESS
from lagscale.kafka.probe.result import ProbeRequest, ProbeResult
from lagscale.kafka.probe.runner import ProbeRunner
from lagscale.store.connection import open_pool
from lagscale.store.registrations.answers import PostgresDecisions, PostgresFreezes
from lagscale.store.registrations.load import PostgresRegistrations
from lagscale.store.verdicts.judge import PostgresVerdicts
from services.scaler.grpc.proto import externalscaler_pb2_grpc as pb_grpc
from services.scaler.replica import Scaler, ScalerDependencies
from services.scaler.settings import ScalerSettings
from tests.fuzz.tenant_isolation.isolated_tenants import IsolatedTenant
from tests.fuzz.tenant_isolation.isolation_loops import Pair
from tests.integration.scaler.conftest import eventually
from tests.support.api_server import ADMIN, bearer, serving


class EchoingProbeRunner(ProbeRunner):
    """Looks at no cluster, and tells which one it was to look at."""

    async def run(
        self, tenant_id: int, cluster_id: int, request: ProbeRequest, *, wait_for_slot: bool = False
    ) -> ProbeResult:
        return ProbeResult(problem="unreachable", text=f"{request.bootstrap} {request.secrets}")


@pytest.fixture
def quiet() -> None:
    """Thousands of refusals are no news."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))


@pytest.fixture
async def api(shared_url: str, quiet: None) -> AsyncIterator[httpx.AsyncClient]:
    """The API, asked with the bootstrap key."""
    async with serving(shared_url, probe_runner=(ANY_ADDRESS, EchoingProbeRunner(1.0))) as client:
        client.headers.update(bearer(ADMIN))
        yield client


@pytest.fixture
async def pair(api: httpx.AsyncClient, shared_url: str) -> Pair:
    """Two tenants that differ in what they hold, and in no name but their own and one more."""
    return await IsolatedTenant.made(api, shared_url, 771_377_717), await IsolatedTenant.made(
        api, shared_url, 393_939_919
    )


@pytest.fixture
async def stubs(shared_url: str, tmp_path: Path, pair: Pair) -> AsyncIterator[dict[str, Any]]:
    """KEDA instance -> its connection to one scaler on the real store; the "stranger" is bound to nobody."""
    servers, clients = Authority.make("servers"), Authority.make("clients")
    pair_of_server = servers.pair("localhost")
    files = {"crt": pair_of_server.certificate, "key": pair_of_server.key, "ca": clients.certificate}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    settings = ScalerSettings(
        database_url=shared_url,
        cache_dir=tmp_path,
        scaler_drain_seconds=0,
        scaler_http_listen="127.0.0.1:0",
        scaler_grpc_security="mtls",
        scaler_tls_certificate_file=tmp_path / "crt",
        scaler_tls_key_file=tmp_path / "key",
        scaler_tls_client_ca_file=tmp_path / "ca",
    )
    async with AsyncExitStack() as stack:
        pool = open_pool(shared_url, "lagscale_scaler", 2, application="walls")
        await pool.open(wait=True)
        stack.push_async_callback(pool.close)
        scaler = Scaler(_parts(pool), settings, "walls")
        port, _ = await scaler.start("127.0.0.1:0")
        stack.push_async_callback(scaler.stop)
        await eventually(lambda: scaler._registrations.directory is not None)
        made = {}
        for instance in (pair[0].instance, pair[1].instance, "stranger"):
            name = f"spiffe://{instance}" if instance == "stranger" else instance
            shown = clients.sign(Request("keda", (x509.UniformResourceIdentifier(name),)))
            credentials = grpc.ssl_channel_credentials(
                servers.certificate.encode(), shown.key.encode(), shown.certificate.encode()
            )
            channel = grpc.aio.secure_channel(
                f"localhost:{port}", credentials, options=[("grpc.use_local_subchannel_pool", 1)]
            )
            made[instance] = pb_grpc.ExternalScalerStub(await stack.enter_async_context(channel))
        yield made


def _parts(pool: Any) -> ScalerDependencies:
    async def never() -> AsyncIterator[str]:
        await asyncio.Event().wait()
        yield ""

    return ScalerDependencies(
        PostgresVerdicts(pool), PostgresRegistrations(pool), PostgresDecisions(pool), PostgresFreezes(pool), never
    )
