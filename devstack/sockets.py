"""Addresses where nobody answers: some accept and never say a word, some refuse. For tests and benches."""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def silent(count: int) -> Iterator[list[str]]:
    """Addresses that accept connections and never say a word."""
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
                # Who has gone need not be kept; only the living wait for an answer.
                for one in [one for one in accepted if _is_over(one)]:
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


def _is_over(accepted: socket.socket) -> bool:
    accepted.setblocking(False)
    try:
        # What is left unread keeps a connection as silent as one that is read.
        return not accepted.recv(4096)
    except BlockingIOError:
        return False
    except OSError:
        return True


@contextmanager
def refusing(count: int) -> Iterator[list[str]]:
    """Addresses that refuse every connection: bound, so that nobody else takes them, and not listening."""
    with ExitStack() as stack:
        addresses = []
        for _ in range(count):
            bound = stack.enter_context(socket.socket())
            bound.bind(("127.0.0.1", 0))
            addresses.append(f"127.0.0.1:{bound.getsockname()[1]}")
        yield addresses
