"""KEDA's identity in real handshakes: which clients are accepted, which bindings apply, and rotation of the files."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import itertools
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from prometheus_client import REGISTRY

from devstack.certificates import Authority, Pair, Request
from services.scaler.grpc.proto import externalscaler_pb2 as pb
from services.scaler.grpc.proto import externalscaler_pb2_grpc as pb_grpc

pytestmark = pytest.mark.integration
Starting = Callable[..., Awaitable[Any]]
DEADLINE = 5.0
_DAY = datetime.timedelta(days=1)
_URI, _DNS = x509.UniformResourceIdentifier, x509.DNSName
KEDA = "spiffe://cluster-7/ns/keda/sa/keda-operator"


@dataclass
class Mounted:
    """A mounted Secret: three files behind a link that is swapped, as in Kubernetes."""

    folder: Path
    servers: Authority = field(default_factory=lambda: Authority.make("servers"))
    clients: Authority = field(default_factory=lambda: Authority.make("clients"))
    numbers: Any = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.swap(self.servers.pair("localhost"), self.clients)

    def swap(self, server: Pair, clients: Authority) -> None:
        version = self.folder / f"..{next(self.numbers)}"
        version.mkdir()
        for name, text in (("tls.crt", server.certificate), ("tls.key", server.key), ("ca.crt", clients.certificate)):
            (version / name).write_text(text)
            link = self.folder / name
            if not link.is_symlink():
                link.symlink_to(Path("..data") / name)
        fresh = self.folder / "..new"
        fresh.symlink_to(version.name)
        fresh.replace(self.folder / "..data")

    def settings(self, security: str = "mtls", **others: Any) -> dict[str, Any]:
        return {
            "scaler_grpc_security": security,
            "scaler_tls_certificate_file": self.folder / "tls.crt",
            "scaler_tls_key_file": self.folder / "tls.key",
            "scaler_tls_client_ca_file": self.folder / "ca.crt",
            **others,
        }

    def client(self, *names: x509.GeneralName, authority: Authority | None = None, **validity: Any) -> Any:
        return self.shows((authority or self.clients).sign(Request("keda", names, **validity)))

    def shows(self, pair: Pair) -> Any:
        return grpc.ssl_channel_credentials(
            self.servers.certificate.encode(), pair.key.encode(), pair.certificate.encode()
        )

    def without(self) -> Any:
        return grpc.ssl_channel_credentials(self.servers.certificate.encode())


@pytest.fixture
def mounted(tmp_path: Path) -> Mounted:
    return Mounted(tmp_path / "secret")


@pytest.fixture
def good(mounted: Mounted) -> Any:
    return mounted.client(_URI(KEDA))


async def bound(world: Any, say: Any, *bindings: tuple[str, str]) -> None:
    """Replace the bindings, and wait until the scaler has loaded them. Its monitor is calm by default."""
    world.verdicts.judgments.setdefault(1, say.calm())
    world.registry.change(bindings=dict.fromkeys(bindings, 1))
    world.notifications.put_nowait("lagscale_registry")
    await say.eventually(
        lambda: world.scaler._registrations.directory.registrations.version == world.registry.present.version
    )


async def refused(world: Any, call: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value.code(), caught.value.details()


async def asked_by(
    world: Any, say: Any, credentials: Any, port: int | None = None, service: str = "ingest-logs"
) -> Any:
    """GetMetrics over a new connection."""
    async with say.channel_to(world.scaler.ports[0] if port is None else port, credentials) as channel:
        request = pb.GetMetricsRequest(scaledObjectRef=world.ref(service), metricName="s0-ingest-logs")
        return await pb_grpc.ExternalScalerStub(channel).GetMetrics(request, timeout=DEADLINE)


@pytest.mark.parametrize(
    ("names", "instance"),
    [
        ([_URI(KEDA)], KEDA),
        ([_DNS("keda-operator.keda.svc")], "keda-operator.keda.svc"),
        ([_DNS("keda-operator.keda.svc"), _URI(KEDA)], KEDA),
        ([_URI(KEDA), _URI("spiffe://other")], KEDA),
        ([_DNS("first.example"), _DNS("second.example")], "first.example"),
        ([_DNS("default"), _URI(KEDA)], KEDA),
    ],
    ids=["URI", "DNS", "URI after DNS", "two URIs", "two DNS names", "default beside a URI"],
)
async def test_the_instance_is_the_first_uri_else_the_first_dns_name(
    start: Starting, mounted: Mounted, say: Any, names: list[x509.GeneralName], instance: str
) -> None:
    world = await start(**mounted.settings(), credentials=mounted.client(*names))
    world.verdicts.judgments[1] = say.sustained(700)
    await bound(world, say, (instance, "shop"))
    assert (await world.metric()).metricValues[0].metricValue == 700
    others = {name.value for name in names} - {instance}
    await bound(world, say, *((other, "shop") for other in (*others, "keda", "default", "another")))
    code, _ = await refused(world, world.metric())
    assert code is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize("wrong", ["authority", "expired", "early", "none", "plain text", "self-signed"])
async def test_clients_without_a_valid_certificate_are_rejected(
    start: Starting, mounted: Mounted, say: Any, good: Any, wrong: str
) -> None:
    world = await start(**mounted.settings(), credentials=good)
    await bound(world, say, (KEDA, "shop"), ("default", "market"))
    stranger = Authority.make("clients")
    shown = {
        "authority": mounted.client(_URI(KEDA), authority=stranger),
        "self-signed": mounted.shows(stranger.own()),
        "expired": mounted.client(_URI(KEDA), begins=-2 * _DAY, ends=-datetime.timedelta(seconds=5)),
        "early": mounted.client(_URI(KEDA), begins=datetime.timedelta(hours=1)),
        "none": mounted.without(),
        "plain text": None,
    }
    code, _ = await refused(world, asked_by(world, say, shown[wrong]))
    assert code is grpc.StatusCode.UNAVAILABLE
    assert world.verdicts.asked == []
    # The same request with the right certificate is answered.
    await world.metric()
    assert world.verdicts.asked == [[1]]


@pytest.mark.parametrize(
    "names",
    [[], [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))], [_DNS("default")], [_URI("default")]],
    ids=["no extension", "an address only", "DNS default", "URI default"],
)
async def test_a_certificate_without_a_name_matches_no_binding(
    start: Starting, mounted: Mounted, say: Any, good: Any, names: list[x509.GeneralName]
) -> None:
    world = await start(**mounted.settings(), credentials=mounted.client(*names))
    await bound(world, say, (KEDA, "shop"), ("default", "shop"), ("127.0.0.1", "shop"), ("", "shop"))
    nameless = await refused(world, world.metric())
    missing = await refused(world, asked_by(world, say, good, service="ingest-lost"))
    assert nameless[0] is missing[0] is grpc.StatusCode.NOT_FOUND
    assert nameless[1] == missing[1].replace("ingest-lost", "ingest-logs").partition(" Did you mean")[0]


async def test_bindings_of_default_do_not_count_where_certificates_are_required(
    start: Starting, mounted: Mounted, say: Any, good: Any
) -> None:
    world = await start(**mounted.settings(), credentials=good)
    # As registered before certificates were required.
    assert world.registry.present.bindings["default", "shop"] == 1
    assert (await refused(world, world.metric()))[0] is grpc.StatusCode.NOT_FOUND
    await bound(world, say, ("default", "*"))
    assert (await refused(world, world.metric()))[0] is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize("security", ["plain", "tls"])
async def test_with_a_second_address_clients_may_come_without_a_certificate(
    start: Starting, mounted: Mounted, say: Any, good: Any, security: str
) -> None:
    settings = mounted.settings(security, scaler_mtls_listen="127.0.0.1:0")
    first = None if security == "plain" else mounted.without()
    world = await start(**settings, credentials=first)
    world.verdicts.judgments[1] = say.sustained(700)
    plain, mutual = world.scaler.ports
    await bound(world, say, ("default", "shop"))
    await world.metric()
    assert (await refused(world, asked_by(world, say, good, mutual)))[0] is grpc.StatusCode.NOT_FOUND
    await bound(world, say, (KEDA, "shop"))
    assert (await asked_by(world, say, good, mutual)).metricValues[0].metricValue == 700
    assert (await refused(world, asked_by(world, say, first, plain)))[0] is grpc.StatusCode.NOT_FOUND
    assert (await refused(world, asked_by(world, say, mounted.without(), mutual)))[0] is grpc.StatusCode.UNAVAILABLE


async def test_without_client_certificates_every_client_is_default(
    start: Starting, mounted: Mounted, say: Any, good: Any
) -> None:
    settings = mounted.settings("tls", scaler_tls_client_ca_file=None)
    world = await start(**settings, credentials=mounted.without())
    world.verdicts.judgments[1] = say.sustained(700)
    assert (await world.metric()).metricValues[0].metricValue == 700
    # The certificate is not requested, so it does not identify the client.
    await bound(world, say, (KEDA, "shop"))
    assert (await refused(world, asked_by(world, say, good)))[0] is grpc.StatusCode.NOT_FOUND


async def test_a_rotation_leaves_open_connections_and_streams_alone(
    start: Starting, mounted: Mounted, say: Any, good: Any
) -> None:
    world = await start(**mounted.settings(), credentials=good)
    world.verdicts.judgments[1] = say.calm(active=False)
    await bound(world, say, (KEDA, "shop"))
    stream = world.stub.StreamIsActive(world.ref(), timeout=30)
    assert (await stream.read()).result is False

    before = mounted.without()
    mounted.clients, mounted.servers = Authority.make("new clients"), Authority.make("new servers")
    mounted.swap(mounted.servers.pair("localhost"), mounted.clients)
    used = world.scaler._certificates.bundle
    await say.eventually(lambda: world.scaler._certificates.bundle is not used)

    # New handshakes use the new files only.
    fresh = mounted.client(_URI(KEDA))
    assert await asked_by(world, say, fresh)
    for old in (good, before):
        assert (await refused(world, asked_by(world, say, old)))[0] is grpc.StatusCode.UNAVAILABLE
    # Open connections continue.
    world.verdicts.judgments[1] = say.sustained(900)
    world.notifications.put_nowait("lagscale_samples")
    assert (await asyncio.wait_for(stream.read(), DEADLINE)).result is True
    assert (await world.metric()).metricValues[0].metricName == "s0-ingest-logs"
    stream.cancel()


def sample(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def odd(authority: Authority) -> Pair:
    return authority.sign(Request("localhost", (_DNS("localhost"),)), ec.generate_private_key(ec.SECP256K1()))


@pytest.mark.parametrize(
    "fault", ["half", "another key", "no key", "an expired one", "no authority", "gone", "another curve"]
)
async def test_files_that_do_not_match_are_rejected(
    start: Starting, mounted: Mounted, say: Any, good: Any, fault: str
) -> None:
    world = await start(**mounted.settings(), credentials=good)
    await bound(world, say, (KEDA, "shop"))
    used, count = world.scaler._certificates.bundle, "lagscale_scaler_certificate_reloads_total"
    refusals = sample(count, result="rejected")
    pair = mounted.servers.pair("localhost")
    if fault == "half":
        mounted.swap(replace(pair, certificate=pair.certificate[: len(pair.certificate) // 2]), mounted.clients)
    elif fault == "another key":
        mounted.swap(replace(pair, key=mounted.servers.pair("localhost").key), mounted.clients)
    elif fault == "no key":
        mounted.swap(replace(pair, key=""), mounted.clients)
    elif fault == "an expired one":
        mounted.swap(
            mounted.servers.sign(Request("localhost", (_DNS("localhost"),), -2 * _DAY, -_DAY)), mounted.clients
        )
    elif fault == "another curve":
        # A matching pair of a curve that TLS does not support.
        mounted.swap(odd(mounted.servers), mounted.clients)
    elif fault == "no authority":
        (mounted.folder / "ca.crt").unlink()
        (mounted.folder / "ca.crt").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n")
    else:
        (mounted.folder / "tls.crt").unlink()
    await say.eventually(lambda: sample(count, result="rejected") == refusals + 1)
    assert sample("lagscale_scaler_certificate_rejected") == 1.0
    assert world.scaler._certificates.bundle is used
    assert await asked_by(world, say, good)
    # Reported once, however often it is read; and matching files are loaded.
    world.scaler._certificates.reload()
    world.scaler._certificates.reload()
    assert sample(count, result="rejected") == refusals + 1
    for name in ("ca.crt", "tls.crt"):
        (mounted.folder / name).unlink(missing_ok=True)
    mounted.swap(pair, mounted.clients)
    await say.eventually(lambda: world.scaler._certificates.bundle is not used)
    await say.eventually(lambda: sample("lagscale_scaler_certificate_rejected") == 0.0)
    assert await asked_by(world, say, good)


async def test_the_expiry_in_use_is_a_metric(start: Starting, mounted: Mounted, say: Any, good: Any) -> None:
    world = await start(**mounted.settings(), credentials=good)
    ends = datetime.timedelta(days=40)
    mounted.swap(mounted.servers.sign(Request("localhost", (_DNS("localhost"),), ends=ends)), mounted.clients)
    used = world.scaler._certificates.bundle
    await say.eventually(lambda: world.scaler._certificates.bundle is not used)
    now = datetime.datetime.now(datetime.UTC).timestamp()
    expiry = sample("lagscale_scaler_certificate_expiry_timestamp_seconds", certificate="server")
    assert expiry == pytest.approx(now + ends.total_seconds(), abs=60)
    authority = sample("lagscale_scaler_certificate_expiry_timestamp_seconds", certificate="client_ca")
    assert authority == pytest.approx(now + _DAY.total_seconds(), abs=60)


async def _until_serving(watched: Any) -> AsyncIterator[Any]:
    async for response in watched:
        yield response
        if response.status == health_pb2.HealthCheckResponse.SERVING:
            watched.cancel()
            return


async def test_health_and_reflection_require_the_certificate_and_the_probes_do_not(
    start: Starting, mounted: Mounted, say: Any, good: Any
) -> None:
    world = await start(**mounted.settings(), credentials=good)
    # The availability of the store is reported after the first poll.
    watched = health_pb2_grpc.HealthStub(world.channel).Watch(health_pb2.HealthCheckRequest(), timeout=DEADLINE)
    assert any(
        [response.status == health_pb2.HealthCheckResponse.SERVING async for response in _until_serving(watched)]
    )
    reflecting = reflection_pb2_grpc.ServerReflectionStub(world.channel).ServerReflectionInfo(timeout=DEADLINE)
    await reflecting.write(reflection_pb2.ServerReflectionRequest(list_services=""))
    listed = await reflecting.read()
    assert "externalscaler.ExternalScaler" in {one.name for one in listed.list_services_response.service}
    async with say.channel_to(world.scaler.ports[0], mounted.without()) as channel:
        call = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=DEADLINE)
        assert (await refused(world, call))[0] is grpc.StatusCode.UNAVAILABLE
    url = f"http://127.0.0.1:{world.http}/readyz"
    with await asyncio.to_thread(urllib.request.urlopen, url, timeout=DEADLINE) as answer:
        assert answer.status == 200
