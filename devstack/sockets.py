"""Addresses without a server: they accept connections and never respond, or refuse them. For tests and benchmarks."""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def silent(count: int) -> Iterator[list[str]]:
    """Addresses that accept connections and never respond."""
    selector = selectors.DefaultSelector()
    stop = threading.Event()
    accepted: list[socket.socket] = []
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=64)) for _ in range(count)]
        for listening in sockets:
            listening.setblocking(False)
            selector.register(listening, selectors.EVENT_READ, listening)

        def accept() -> None:
            while not stop.is_set():
                for key, _ in selector.select(0.1):
                    accepted.append(key.data.accept()[0])
                # Close connections whose client has disconnected.
                for one in [one for one in accepted if _is_closed(one)]:
                    accepted.remove(one)
                    one.close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield [f"127.0.0.1:{listening.getsockname()[1]}" for listening in sockets]
        stop.set()
        thread.join(5)
        for one in accepted:
            one.close()
        selector.close()


def _is_closed(accepted: socket.socket) -> bool:
    accepted.setblocking(False)
    try:
        # Received data are discarded; the connection stays silent.
        return not accepted.recv(4096)
    except BlockingIOError:
        return False
    except OSError:
        return True


@contextmanager
def refusing(count: int) -> Iterator[list[str]]:
    """Addresses that refuse every connection: bound, so that no other process uses them, and not listening."""
    with ExitStack() as stack:
        addresses = []
        for _ in range(count):
            bound = stack.enter_context(socket.socket())
            bound.bind(("127.0.0.1", 0))
            addresses.append(f"127.0.0.1:{bound.getsockname()[1]}")
        yield addresses
