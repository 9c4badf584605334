"""A real broker on loopback: Apache Kafka of one node, KRaft."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from confluent_kafka.admin import AdminClient

from devstack.certificates import Certificates
from devstack.claims import Claim
from devstack.environment import read_setting
from devstack.java import java, kafka_jars
from devstack.secure_listeners import SecureListeners
from devstack.server import Server, console, free_port

_ROOT = Path(__file__).resolve().parents[1]


_LOG4J = """
status = error
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c{1} %m%n
"""


@dataclass(frozen=True, slots=True)
class _Listener:
    name: str
    protocol: str
    port: int


class Broker:
    """A broker. `LAGSCALE_DEVSTACK_KAFKA_BOOTSTRAP` takes precedence; then nothing is started or stopped.

    Args:
        name: name of its data folder in this clone; default: new data, removed at the end.
        listeners: number of plaintext listeners; each can be registered as a cluster.
        sasl: adds a listener: SASL_PLAINTEXT with PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512.
        tls: adds a listener: SSL with a required client certificate.
        port: of the first listener; a free one by default.
        detached: continues to run when this process ends.
        external: bootstrap servers of an existing broker; nothing is started then either.
        settings: additional properties of the server, which override the defaults.
        advertised: number of a plaintext listener -> advertised `host:port`.
        authorizer: enable ACLs; clients of plaintext listeners are super users. With `sasl` the user `GUEST` exists,
            without any ACL.
        secured: additional listeners with other security settings.
        extra_log_dirs: additional folders for data of partitions; metadata is never stored there.
    """

    USER = "admin"
    PASSWORD = "admin-secret"  # noqa: S105  # Of a broker on loopback that exists for one test.
    GUEST = "guest"

    def __init__(
        self,
        name: str | None = None,
        *,
        listeners: int = 1,
        sasl: bool = False,
        tls: bool = False,
        port: int | None = None,
        detached: bool = False,
        external: str | None = None,
        settings: Mapping[str, str] | None = None,
        advertised: Mapping[int, str] | None = None,
        authorizer: bool = False,
        secured: SecureListeners | None = None,
        extra_log_dirs: Sequence[Path] = (),
    ) -> None:
        self.secured = secured
        self._external = read_setting("LAGSCALE_DEVSTACK_KAFKA_BOOTSTRAP") or external
        self._settings = dict(settings or {})
        self._advertised = {f"PLAIN{number}": address for number, address in (advertised or {}).items()}
        self._authorizer = authorizer
        self._extra_log_dirs = list(extra_log_dirs)
        self._persistent = name is not None
        name = name or f"broker-{uuid.uuid4().hex[:8]}"
        self._folder = _ROOT / ".devstack" / name
        ports = [port or free_port(), *(free_port() for _ in range(listeners - 1))]
        self._listeners = [_Listener(f"PLAIN{n}", "PLAINTEXT", p) for n, p in enumerate(ports)]
        self._sasl = _Listener("SASL", "SASL_PLAINTEXT", free_port()) if sasl else None
        self._tls = _Listener("TLS", "SSL", free_port()) if tls else None
        self._controller_port = free_port()
        self._claim: Claim | None = None
        self.certificates: Certificates | None = None
        self.server = Server("broker", _ROOT / ".devstack/log" / f"{name}.log", detached=detached)

    @property
    def address(self) -> str:
        """`host:port` of the first plain listener."""
        return self._external or f"127.0.0.1:{self._listeners[0].port}"

    @property
    def addresses(self) -> list[str]:
        """`host:port` of every plain listener."""
        return [self._external] if self._external else [f"127.0.0.1:{one.port}" for one in self._listeners]

    @property
    def sasl_address(self) -> str:
        """`host:port` of the SASL_PLAINTEXT listener; user `USER`, password `PASSWORD`."""
        if self._sasl is None:
            raise RuntimeError("this broker was created without sasl=True")
        return f"127.0.0.1:{self._sasl.port}"

    @property
    def tls_address(self) -> str:
        """`host:port` of the SSL listener; see `certificates`."""
        if self._tls is None:
            raise RuntimeError("this broker was created without tls=True")
        return f"127.0.0.1:{self._tls.port}"

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.server.pid

    def start(self) -> None:
        """Install what is missing, start on the same data and ports as before, wait until it is ready."""
        self.spawn_without_waiting()
        self.await_ready()

    def await_ready(self) -> None:
        """Wait until it is ready, after `spawn_without_waiting`."""
        if not self._external:
            self.server.await_ready(self._is_ready)

    def spawn_without_waiting(self) -> None:
        """Start without waiting, so that other servers can start at the same time."""
        if self._external:
            console.print(f"broker: external, {self._external}", highlight=False)
            return
        jars = kafka_jars()
        if self._claim is None and not self._persistent:
            self._claim = Claim(self._folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        if (self._tls is not None or self.secured is not None) and self.certificates is None:
            self.certificates = Certificates.make(self._folder)
        properties = self._folder / "server.properties"
        properties.write_text("\n".join(f"{key}={value}" for key, value in self._properties().items()) + "\n")
        log4j = self._folder / "log4j2.properties"
        log4j.write_text(_LOG4J)
        program = [java(), "-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", f"-Dlog4j2.configurationFile={log4j}"]
        program += [*(self.secured.java_options if self.secured is not None else ()), "-cp", f"{jars}/*"]
        if not (self._folder / "data/meta.properties").exists():
            # The program runs for two seconds, too short for an optimizing compiler.
            self._format([*program, "-XX:TieredStopAtLevel=1", "kafka.tools.StorageTool"], properties)
        self.server.spawn([*program, "kafka.Kafka", str(properties)])
        if self._claim is not None:
            self._claim.record_server(self.server)

    def stop(self) -> None:
        """Stop it; unnamed data are removed."""
        if self._external:
            return
        self.server.stop(seconds=10)
        if self._claim is not None:
            self._claim.release()
            self._claim = None

    def kill(self) -> None:
        """SIGKILL."""
        self.server.kill()

    def empty(self, topic: str, partition: int) -> None:
        """Delete the data of a partition while the broker is stopped; the topic id stays."""
        for file in (self._folder / "data" / f"{topic}-{partition}").iterdir():
            if file.name != "partition.metadata":
                file.unlink()

    def pause(self) -> None:
        """SIGSTOP: it accepts connections and does not respond."""
        self.server.pause()

    def resume(self) -> None:
        """SIGCONT."""
        self.server.resume()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _list_listeners(self) -> list[_Listener]:
        secured = [] if self.secured is None else [_Listener(*one) for one in self.secured.listeners]
        return [*self._listeners, *(one for one in (self._sasl, self._tls) if one is not None), *secured]

    def _properties(self) -> dict[str, str]:
        listeners = ",".join(f"{one.name}://127.0.0.1:{one.port}" for one in self._list_listeners())
        advertised = ",".join(
            f"{one.name}://{self._advertised.get(one.name, f'127.0.0.1:{one.port}')}" for one in self._list_listeners()
        )
        protocols = ",".join(f"{one.name}:{one.protocol}" for one in self._list_listeners())
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self._controller_port}",
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{self._controller_port}",
            "advertised.listeners": advertised,
            "listener.security.protocol.map": f"{protocols},CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": self._listeners[0].name,
            "log.dirs": ",".join(str(path) for path in (self._folder / "data", *self._extra_log_dirs)),
            "metadata.log.dir": str(self._folder / "data"),
            "auto.create.topics.enable": "false",
            "delete.topic.enable": "true",
            "group.coordinator.rebalance.protocols": "classic,consumer,share",
            "group.initial.rebalance.delay.ms": "0",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "2",
            # A killed broker may come back at once.
            "broker.heartbeat.interval.ms": "500",
            "broker.session.timeout.ms": "1500",
            "num.network.threads": "2",
            "num.io.threads": "2",
            "log.retention.check.interval.ms": "1000",
            "log.initial.task.delay.ms": "1000",
            "file.delete.delay.ms": "500",
        }
        if self._sasl is not None:
            properties |= self._sasl_properties(self._sasl)
        if self._tls is not None and self.certificates is not None:
            properties |= self.certificates.server_properties(f"listener.name.{self._tls.name.lower()}")
        if self._authorizer:
            properties |= {
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS",
            }
        return properties | self._secure_properties() | self._settings

    def _secure_properties(self) -> dict[str, str]:
        if self.secured is None or self.certificates is None:
            return {}
        return self.secured.properties(self.certificates)

    def _sasl_properties(self, listener: _Listener) -> dict[str, str]:
        jaas = f'required username="{self.USER}" password="{self.PASSWORD}"'
        prefix = f"listener.name.{listener.name.lower()}"
        return {
            f"{prefix}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            f"{prefix}.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule "
            f'{jaas} user_{self.USER}="{self.PASSWORD}" user_{self.GUEST}="{self.PASSWORD}";',
            f"{prefix}.scram-sha-256.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule "
            "required;",
            f"{prefix}.scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule "
            "required;",
        }

    def _format(self, storage_tool: list[str], properties: Path) -> None:
        cluster = "ZGV2c3RhY2stY2x1c3Rlcg"
        argv = [*storage_tool, "format", "--standalone", "-t", cluster, "-c", str(properties)]
        if self._sasl is not None or self.secured is not None:
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                argv += ["--add-scram", f"{mechanism}=[name={self.USER},password={self.PASSWORD}]"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"formatting the broker's storage failed:\n{(done.stdout + done.stderr)[-2000:]}")

    def _is_ready(self) -> bool:
        client = AdminClient({"bootstrap.servers": self.address, "log_level": 0, "socket.timeout.ms": 1000})
        try:
            return bool(client.list_topics(timeout=1).brokers)
        except Exception:  # On any error the broker is not ready yet.
            return False
