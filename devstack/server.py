"""One server process: started, awaited, stopped, killed, paused and continued by its process id."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console

#: The only console on standard error: a message during a spinner must not run into its line.
console = Console(stderr=True, soft_wrap=True)
_POLL_SECONDS = 0.05
_FIRST_PORT = 12000
_given_out: set[int] = set()
#: Not seeded: processes with the same seed must not choose the same ports.
_random = random.SystemRandom()


class ServerFailed(RuntimeError):
    """A server did not answer in time, or ended; the message holds the tail of its log."""


def free_port() -> int:
    """A free port on loopback that this process has not returned before.

    It is below the ephemeral ports: while a killed server is down, a client that reconnects in a loop could otherwise
    get that very port, connect to itself, and block the server.
    """
    first_for_clients = _first_client_port()
    while True:
        port = _random.randrange(_FIRST_PORT, first_for_clients)
        if port not in _given_out and is_free(port):
            _given_out.add(port)
            return port


def is_free(port: int) -> bool:
    """Whether a server could listen on that port of loopback now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _first_client_port() -> int:
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        first = 0
    # If nearly all ports are ephemeral, use the default limit.
    return first if first > _FIRST_PORT + 1000 else 32768


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait until the condition holds.

    Raises:
        ServerFailed: it did not within `seconds`.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise ServerFailed(f"{what} within {seconds:g} s")
        time.sleep(_POLL_SECONDS)


def started_at(pid: int) -> int | None:
    """The kernel's start time of a process in clock ticks: with the process id it identifies a process.

    Not psutil's `create_time`, which changes with the system clock.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state_and_rest = text.rsplit(")", 1)[1].split()
    return None if state_and_rest[0] == "Z" else int(state_and_rest[19])


def family(pid: int) -> list[int]:
    """A process and its children, including those with process groups of their own."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    return [pid, *map(int, children)]


def signal_all(pids: Iterable[int], number: int) -> None:
    """Send a signal to each process that still runs."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


class Server:
    """A process in a group of its own, with its log in a file. `on_spawn` is called as soon as it runs.

    Args:
        name: for messages.
        log: where its output goes; appended.
        stop_signal: the signal that asks it to end.
        detached: lives on when this process ends; else it is ended with it, even by SIGKILL. The kernel takes the
            end of the thread that spawned it for that, so spawn from a thread that lasts.
    """

    def __init__(self, name: str, log: Path, *, stop_signal: int = signal.SIGTERM, detached: bool = False) -> None:
        self.name = name
        self.log = log
        self.stop_signal = stop_signal
        self.detached = detached
        self.on_spawn: Callable[[Server], None] | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self._stop_requested = False

    @property
    def pid(self) -> int:
        """Its process id.

        Raises:
            ServerFailed: it does not run.
        """
        if self.process is None:
            raise ServerFailed(f"{self.name} does not run")
        return self.process.pid

    def spawn(self, argv: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path | None = None) -> None:
        """Start it; does not wait for it to answer."""
        self._stop_requested = False
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                argv if self.detached else [*dying_with_parent(), *argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=None if env is None else dict(env),
                cwd=cwd,
                start_new_session=True,
            )
        if self.on_spawn is not None:
            self.on_spawn(self)

    def await_ready(self, ready: Callable[[], bool], seconds: float = 60) -> None:
        """Wait until it answers.

        Raises:
            ServerFailed: it ended, or did not answer in time; with the tail of its log.
        """

        def answers() -> bool:
            if self.process is not None and self.process.poll() is not None:
                raise ServerFailed(f"{self.name} ended with {self.process.returncode}:\n{self.tail()}")
            return ready()

        try:
            wait_until(answers, seconds, f"{self.name} did not answer")
        except ServerFailed as failure:
            if "ended with" in str(failure):
                raise
            raise ServerFailed(f"{failure}:\n{self.tail()}") from None

    def tail(self, lines: int = 25) -> str:
        """The last lines of its log."""
        if not self.log.exists():
            return "(no log)"
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def send(self, number: int) -> None:
        """Send a signal to its whole group."""
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def pause(self) -> None:
        """SIGSTOP: it keeps its sockets and answers nothing."""
        self.send(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self.send(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, at once."""
        self.send(signal.SIGKILL)
        self._reap()

    def request_stop(self) -> None:
        """Ask it to end, once, also if it was paused; does not wait."""
        self.resume()
        if self.process is not None and self.process.poll() is None and not self._stop_requested:
            os.kill(self.process.pid, self.stop_signal)
            self._stop_requested = True

    def stop(self, seconds: float = 15) -> None:
        """Ask it to end, and kill what is left of its group after `seconds`."""
        if self.process is None:
            return
        self.request_stop()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self._reap()

    def _reap(self) -> None:
        if self.process is not None:
            self.process.wait(10)
            self.process = None


def dying_with_parent(signal_name: str = "TERM", *change_of_user: str) -> list[str]:
    """What to put before a command so that it ends with this process: Ctrl-C and worse leave nothing behind.

    The kernel tells a process of its parent's end only if the parent still lived when it asked to be told, so the
    shell looks whether it did. A change of user clears the wish, so it must be made together with it.
    """
    if shutil.which("setpriv") is None:
        return []
    still_child = '[ "$PPID" = "$0" ] && exec "$@"'
    return ["setpriv", *change_of_user, "--pdeathsig", signal_name, "sh", "-c", still_child, str(os.getpid())]
