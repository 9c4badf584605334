"""A Kafka client that connects to allowed addresses only, whatever a broker advertises.

librdkafka connects by itself, and at once, to every broker that a metadata response advertises, to coordinators, and
again whenever they change: checking a response afterwards is too late. But it calls a callback to resolve each broker's
name, without holding a lock, and connects to exactly what that returns. The callback is public in C but not in Python,
so it is set through ctypes, before the client has its first broker.
"""

from __future__ import annotations

import ctypes
import socket
import sys
import threading
import time
import weakref
from collections.abc import Iterable, Mapping
from logging import Logger
from typing import Any

from confluent_kafka import KafkaException, cimpl
from confluent_kafka.admin import AdminClient

from lagscale.kafka.addresses import AddressRules, split_server

#: The resolver's code for a permanent failure.
_EAI_FAIL = -4 if sys.platform.startswith("linux") else 4
_OBJECT_HEADER_BYTES = object.__basicsize__
_CONF_OK = 0
#: A topic's name has no space, so a request for it returns brokers only and creates nothing.
BROKERS_ONLY_TOPIC = "no topic"
_CHECK_SECONDS = 30.0
#: A refusal counts for longer than the check interval, so that the state does not flap.
_REFUSED_SECONDS = 45.0
#: Syslog levels: the library's default, and errors.
_LOG_LEVEL = 6
_LOG_LEVEL_ERROR = 3


class _AddrInfo(ctypes.Structure):
    """`struct addrinfo`; only the order of two fields differs between systems."""


_TAIL = [("ai_canonname", ctypes.c_char_p), ("ai_addr", ctypes.c_void_p)]
_AddrInfo._fields_ = [
    *((name, ctypes.c_int) for name in ("ai_flags", "ai_family", "ai_socktype", "ai_protocol")),
    ("ai_addrlen", ctypes.c_uint32),
    *(reversed(_TAIL) if sys.platform.startswith("linux") else _TAIL),
    ("ai_next", ctypes.POINTER(_AddrInfo)),
]
_AddrInfoPointer = ctypes.POINTER(_AddrInfo)
#: Types of getaddrinfo's result and arguments; those of the callback are the same, and an opaque pointer.
_LOOKUP = (ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(_AddrInfoPointer))
_RESOLVE = ctypes.CFUNCTYPE(*_LOOKUP, ctypes.c_void_p)


class ResolverGuard:
    """The rules of one client, and the addresses refused so far."""

    def __init__(self, rules: AddressRules) -> None:
        self.rules = rules
        self._refused: dict[str, float] = {}
        self._checked_at = float("-inf")

    def admits(self, host: str, port: int, resolved: list[str]) -> bool:
        """Whether the client may connect to these addresses of a broker; records a refusal."""
        admitted = all(self.rules.admits(ip, port, host) for ip in resolved)
        if not admitted:
            self._record_refused([f"{host}:{port}"])
        return admitted

    def check_listeners(self, admin: AdminClient, timeout: float) -> list[str]:
        """Refused addresses of a cluster, advertised listeners included; the cluster is queried twice a minute.

        Rules that need a lookup are applied when the client looks a name up, in its own thread, so that an unresponsive
        name server delays no other cluster.

        Raises:
            KafkaException: the cluster does not return its brokers, and no address was refused.
        """
        # The client keeps looking refused names up, so a refusal that still holds is recent.
        if not self.rules.limited or (recent := self.refused(_REFUSED_SECONDS)):
            return recent if self.rules.limited else []
        if time.monotonic() - self._checked_at > _CHECK_SECONDS:
            try:
                brokers = admin.list_topics(BROKERS_ONLY_TOPIC, timeout=timeout).brokers.values()
            except KafkaException:
                if self.refused(_REFUSED_SECONDS):
                    return self.refused(_REFUSED_SECONDS)
                raise
            candidates = [(str(broker.host), int(broker.port)) for broker in brokers]
            self.filter_servers(candidates)
            self._checked_at = time.monotonic()
        return self.refused(_REFUSED_SECONDS)

    def filter_servers(self, servers: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
        """Record those that are refused whatever their names resolve to; return the others."""
        candidates = list(servers)
        self._record_refused([f"{host}:{port}" for host, port in candidates if self.rules.refuses(host, port)])
        return [server for server in candidates if not self.rules.refuses(*server)]

    def _record_refused(self, addresses: Iterable[str]) -> None:
        self._refused |= dict.fromkeys(addresses, time.monotonic())

    def refused(self, seconds: float = float("inf")) -> list[str]:
        """`host:port` of each address refused within the last `seconds`."""
        since = time.monotonic() - seconds
        return sorted(address for address, at in list(self._refused.items()) if at >= since)


def open_admin(
    config: Mapping[str, Any], rules: AddressRules, logger: Logger | None = None
) -> tuple[AdminClient, ResolverGuard]:
    """A client and the guard of its connections; it connects at the first request.

    Raises:
        KafkaException, ValueError, TypeError: the client rejects the settings.
        RuntimeError: the rules limit something, and the library has no resolver callback.
    """
    guard = ResolverGuard(rules)
    settings = dict(config)
    given = {} if logger is None else {"logger": logger}
    if not rules.limited:
        return AdminClient(settings, **given), guard
    servers = str(settings.pop("bootstrap.servers"))
    # Recorded at once, before the client tries them.
    guard.filter_servers([split_server(server) for server in servers.split(",")])
    level = int(settings.pop("log_level", _LOG_LEVEL))
    # Brokers are added below; until then the library would warn that it has none.
    admin = AdminClient({**settings, "log_level": min(level, _LOG_LEVEL_ERROR)}, **given)
    _load_library().install_resolver(admin, guard, servers, level)
    return admin, guard


class _RdKafka:
    """Functions of the client library that are public in C but not in Python."""

    def __init__(self) -> None:
        try:
            # Includes the symbols of the librdkafka that it was linked with.
            library = ctypes.CDLL(cimpl.__file__)
            self._conf = _declare_signature(library.rd_kafka_conf, ctypes.c_void_p, ctypes.c_void_p)
            self._opaque = _declare_signature(library.rd_kafka_opaque, ctypes.c_void_p, ctypes.c_void_p)
            self._set = _declare_signature(
                library.rd_kafka_conf_set, ctypes.c_int, ctypes.c_void_p, *[ctypes.c_char_p] * 3, ctypes.c_size_t
            )
            self._on_resolve = _declare_signature(library.rd_kafka_conf_set_resolve_cb, None, ctypes.c_void_p, _RESOLVE)
            self._level = _declare_signature(library.rd_kafka_set_log_level, None, ctypes.c_void_p, ctypes.c_int)
            self._add = _declare_signature(library.rd_kafka_brokers_add, ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
        except (OSError, AttributeError) as missing:
            raise RuntimeError("this build of the Kafka client cannot enforce address restrictions") from missing
        system = ctypes.CDLL(None, use_errno=True)
        self._getaddrinfo = _declare_signature(system.getaddrinfo, *_LOOKUP)
        self._freeaddrinfo = _declare_signature(system.freeaddrinfo, None, _AddrInfoPointer)
        self._guards: dict[int, ResolverGuard] = {}
        # Lives as long as the process: clients that are being destroyed may still call it.
        self._callback = _RESOLVE(self._resolve)

    def install_resolver(self, admin: AdminClient, guard: ResolverGuard, servers: str, level: int) -> None:
        """Set the callback, then add the client's first brokers."""
        key = id(admin)
        handle = ctypes.c_void_p.from_address(key + _OBJECT_HEADER_BYTES).value
        if handle is None or self._opaque(handle) != key:
            raise RuntimeError("this build of the Kafka client cannot enforce address restrictions")
        self._guards[key] = guard
        # Runs before the client is destroyed; without a guard everything is refused.
        weakref.finalize(admin, self._guards.pop, key, None)
        self._level(handle, level)
        conf = self._conf(handle)
        self._on_resolve(conf, self._callback)
        # A client that has lost all its brokers starts again with these.
        error_text = ctypes.create_string_buffer(200)
        if self._set(conf, b"bootstrap.servers", servers.encode(), error_text, len(error_text)) != _CONF_OK:
            raise ValueError("the client rejects the bootstrap servers")
        if self._add(handle, servers.encode()) < 1:
            raise ValueError("the client rejects the bootstrap servers")

    def _resolve(
        self, node: bytes | None, service: bytes | None, hints: int | None, result: Any, opaque: int | None
    ) -> int:
        try:
            if node is None:
                self._freeaddrinfo(result[0])
                return 0
            return self._resolve_checked(node, service or b"0", hints, result, self._guards.get(opaque or 0))
        except BaseException:  # Fail closed: an unchecked address is never connected to.
            return _EAI_FAIL

    def _resolve_checked(
        self, node: bytes, service: bytes, hints: int | None, result: Any, guard: ResolverGuard | None
    ) -> int:
        if guard is None:
            return _EAI_FAIL
        host, port = node.decode(), int(service)
        if not guard.filter_servers([(host, port)]):
            return _EAI_FAIL
        code = int(self._getaddrinfo(node, service, hints, result))
        if code or guard.admits(host, port, [_format_address(one) for one in _list_addresses(result[0])]):
            return code
        self._freeaddrinfo(result[0])
        result[0] = _AddrInfoPointer()
        return _EAI_FAIL


_lock = threading.Lock()
_loaded: list[_RdKafka] = []


def _load_library() -> _RdKafka:
    with _lock:
        if not _loaded:
            _loaded.append(_RdKafka())
        return _loaded[0]


def _declare_signature(function: Any, result: Any, *arguments: Any) -> Any:
    function.restype = result
    function.argtypes = list(arguments)
    return function


def _list_addresses(first: Any) -> list[Any]:
    resolved = []
    while first:
        resolved.append(first.contents)
        first = first.contents.ai_next
    return resolved


def _format_address(one: Any) -> str:
    raw = ctypes.string_at(one.ai_addr, one.ai_addrlen)
    if one.ai_family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, raw[4:8])
    return socket.inet_ntop(socket.AF_INET6, raw[8:24])
