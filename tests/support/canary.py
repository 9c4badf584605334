"""A listener that must stay alone; for tests of what is never connected to."""

from __future__ import annotations

import socket
import threading


class Canary:
    """Counts who connects."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        self.visits = 0
        threading.Thread(target=self._watch, daemon=True).start()

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"127.0.0.1:{self.port}"

    def close(self) -> None:
        """Listen no more."""
        # Closing alone would not wake the thread that accepts.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _watch(self) -> None:
        try:
            while True:
                connection, _ = self._socket.accept()
                self.visits += 1
                connection.close()
        except OSError:
            return
