"""A Kafka client that connects to nothing but what the address rules admit, whatever a broker tells it.

librdkafka connects by itself, and at once, to every broker that a metadata answer advertises, to coordinators, and
again whenever they change: looking at an answer afterwards comes too late. It does ask a callback to resolve each
broker's name, without any lock held, and connects to just what that answers. The callback is public in C, though not
in Python, so it is set here through ctypes, before the client knows its first broker.
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

#: What the resolver says of a name that will never be known; the client takes it for just that.
_EAI_FAIL = -4 if sys.platform.startswith("linux") else 4
_OBJECT_HEADER_BYTES = object.__basicsize__
_CONF_OK = 0
#: A space is in no topic's name.
_BROKERS_ONLY_TOPIC = "no topic"
_CHECK_SECONDS = 30.0
#: A refusal counts for longer than until the next look, so that the state does not flap.
_REFUSED_SECONDS = 45.0
#: Levels of syslog: the library's default, and errors.
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
_RESOLVE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(_AddrInfoPointer), ctypes.c_void_p
)


class ResolverGuard:
    """The rules of one client, and what they have refused so far."""

    def __init__(self, rules: AddressRules) -> None:
        self.rules = rules
        self._refused: dict[str, float] = {}
        self._checked_at = float("-inf")

    def admits(self, host: str, port: int, resolved: list[str]) -> bool:
        """Whether the client may connect to these addresses of a broker; a refusal is remembered."""
        admitted = all(self.rules.admits(ip, port, host) for ip in resolved)
        if not admitted:
            self._record_refused([f"{host}:{port}"])
        return admitted

    def check_listeners(self, admin: AdminClient, timeout: float) -> list[str]:
        """Refused addresses of a cluster, of those that its brokers advertise too; asked for anew twice a minute.

        What only a look-up can tell is judged when the client looks it up, in its own thread: a name server that does
        not answer holds up nobody else.

        Raises:
            KafkaException: the cluster does not tell its brokers; with the addresses refused until then, it is none.
        """
        # The client goes on looking refused names up, so what is refused still is recent.
        if not self.rules.limited or (recent := self.refused(_REFUSED_SECONDS)):
            return recent if self.rules.limited else []
        if time.monotonic() - self._checked_at > _CHECK_SECONDS:
            try:
                # No topic can have this name, so nothing is created, and nothing but brokers is answered.
                brokers = admin.list_topics(_BROKERS_ONLY_TOPIC, timeout=timeout).brokers.values()
            except KafkaException:
                if self.refused(_REFUSED_SECONDS):
                    return self.refused(_REFUSED_SECONDS)
                raise
            candidates = [(str(broker.host), int(broker.port)) for broker in brokers]
            self.filter_servers(candidates)
            self._checked_at = time.monotonic()
        return self.refused(_REFUSED_SECONDS)

    def filter_servers(self, servers: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
        """Remember which of these are refused whatever their names lead to; the others."""
        candidates = list(servers)
        self._record_refused([f"{host}:{port}" for host, port in candidates if self.rules.refuses(host, port)])
        return [server for server in candidates if not self.rules.refuses(*server)]

    def _record_refused(self, addresses: Iterable[str]) -> None:
        self._refused |= dict.fromkeys(addresses, time.monotonic())

    def refused(self, seconds: float = float("inf")) -> list[str]:
        """`host:port` of what was refused within the last so many seconds."""
        since = time.monotonic() - seconds
        return sorted(address for address, at in list(self._refused.items()) if at >= since)


def open_admin(
    config: Mapping[str, Any], rules: AddressRules, logger: Logger | None = None
) -> tuple[AdminClient, ResolverGuard]:
    """A client, and the guard of its connections; it does not connect before it is asked for something.

    Raises:
        KafkaException, ValueError, TypeError: the client refuses the settings.
        RuntimeError: the library cannot be guarded, and the rules limit something.
    """
    guard = ResolverGuard(rules)
    settings = dict(config)
    given = {} if logger is None else {"logger": logger}
    if not rules.limited:
        return AdminClient(settings, **given), guard
    servers = str(settings.pop("bootstrap.servers"))
    # One that is refused in any case refuses the cluster, so the client need not even begin.
    guard.filter_servers([split_server(server) for server in servers.split(",")])
    level = int(settings.pop("log_level", _LOG_LEVEL))
    # The library would warn of having no brokers, which is so for a moment only.
    admin = AdminClient({**settings, "log_level": min(level, _LOG_LEVEL_ERROR)}, **given)
    _load_library().guard(admin, guard, servers, level)
    return admin, guard


class _RdKafka:
    """The C side of the client's library: the functions that are not known to Python."""

    def __init__(self) -> None:
        try:
            # Its own symbols, and those of the librdkafka that it was linked with, wherever that lies.
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
            raise RuntimeError("this build of the Kafka client cannot keep to limits of addresses") from missing
        system = ctypes.CDLL(None, use_errno=True)
        self._getaddrinfo = _declare_signature(
            system.getaddrinfo,
            ctypes.c_int,
            ctypes.c_char_p,
            ctypes.c_char_p,
            ctypes.c_void_p,
            ctypes.POINTER(_AddrInfoPointer),
        )
        self._freeaddrinfo = _declare_signature(system.freeaddrinfo, None, _AddrInfoPointer)
        self._guards: dict[int, ResolverGuard] = {}
        # Kept for as long as the process: clients that are being destroyed may still call it.
        self._callback = _RESOLVE(self._resolve)

    def guard(self, admin: AdminClient, guard: ResolverGuard, servers: str, level: int) -> None:
        """Set the callback, then tell the client its first brokers."""
        key = id(admin)
        handle = ctypes.c_void_p.from_address(key + _OBJECT_HEADER_BYTES).value
        if handle is None or self._opaque(handle) != key:
            raise RuntimeError("this build of the Kafka client cannot keep to limits of addresses")
        self._guards[key] = guard
        # It runs before the client is torn down; without a guard everything is refused.
        weakref.finalize(admin, self._guards.pop, key, None)
        self._level(handle, level)
        conf = self._conf(handle)
        self._on_resolve(conf, self._callback)
        # A client that has lost all its brokers begins again with these.
        error_text = ctypes.create_string_buffer(200)
        if self._set(conf, b"bootstrap.servers", servers.encode(), error_text, len(error_text)) != _CONF_OK:
            raise ValueError("the client refuses the bootstrap servers")
        if self._add(handle, servers.encode()) < 1:
            raise ValueError("the client refuses the bootstrap servers")

    def _resolve(
        self, node: bytes | None, service: bytes | None, hints: int | None, result: Any, opaque: int | None
    ) -> int:
        try:
            if node is None:
                self._freeaddrinfo(result[0])
                return 0
            return self._resolve_checked(node, service or b"0", hints, result, self._guards.get(opaque or 0))
        except BaseException:  # Whatever it is, nothing that was not checked is connected to.
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
