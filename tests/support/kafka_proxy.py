"""A TCP proxy before one listener of a broker: it swallows requests of some kinds and rewrites answers."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Self

Rewrite = Callable[[bytes], bytes]


class KafkaProxy:
    """Listens on a free port at once; connects to `upstream`, which is set before the first client.

    Attributes:
        swallowed: API keys of requests that are never passed on.
        rewrites: API key -> what its answers become.
        requests: API keys of all requests so far.
        connected: how many connections to the broker are open.
    """

    def __init__(self) -> None:
        self.upstream = ""
        self.swallowed: frozenset[int] = frozenset()
        self.rewrites: dict[int, Rewrite] = {}
        self.requests: list[int] = []
        self.connected = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._sockets:
            _close(one)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                try:
                    host, port = self.upstream.rsplit(":", 1)
                    broker = socket.create_connection((host, int(port)))
                except OSError:
                    _close(client)
                    continue
                self._sockets.append(broker)
                self.connected += 1
                pending: dict[int, int] = {}
                threading.Thread(target=self._pass_requests, args=(client, broker, pending), daemon=True).start()
                threading.Thread(target=self._pass_answers, args=(broker, client, pending), daemon=True).start()

    def _pass_requests(self, client: socket.socket, broker: socket.socket, pending: dict[int, int]) -> None:
        for frame in _read_frames(client):
            key, _, correlation = struct.unpack_from(">hhi", frame)
            self.requests.append(key)
            if key not in self.swallowed:
                pending[correlation] = key
                _send(broker, frame)
        _close(broker)

    def _pass_answers(self, broker: socket.socket, client: socket.socket, pending: dict[int, int]) -> None:
        for frame in _read_frames(broker):
            (correlation,) = struct.unpack_from(">i", frame)
            _send(client, self.rewrites.get(pending.pop(correlation), bytes)(frame))
        self.connected -= 1
        _close(client)


def _read_frames(source: socket.socket) -> Iterator[bytes]:
    with suppress(OSError), source.makefile("rb") as stream:
        while len(head := stream.read(4)) == 4:
            yield stream.read(*struct.unpack(">i", head))


def _send(target: socket.socket, frame: bytes) -> None:
    with suppress(OSError):
        target.sendall(struct.pack(">i", len(frame)) + frame)


def _close(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
