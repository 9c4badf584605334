"""`lagscale-api` as a process: it starts without the store, is ready with it, and ends when told."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from lagscale.store.migrate import migrate

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[3]
ADMIN = "bootstrap-key-of-this-test"


def environment(**variables: str) -> dict[str, str]:
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(("LAGSCALE_", "KAFKA_"))}
    return inherited | {"PYTHONPATH": str(ROOT)} | variables


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@contextmanager
def running(address: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "services.api"],
        env=environment(LAGSCALE_API_LISTEN=address, LAGSCALE_API_ADMIN_KEY=ADMIN, **variables),
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def eventually(check: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline, pause = time.monotonic() + seconds, threading.Event()
    while not check():
        assert time.monotonic() < deadline, "it did not happen in time"
        pause.wait(0.05)


def status(address: str, path: str) -> int:
    try:
        return httpx.get(
            f"http://{address}{path}", headers={"Authorization": f"Bearer {ADMIN}"}, timeout=10
        ).status_code
    except httpx.TransportError:
        return 0


def test_it_starts_before_the_schema_and_is_ready_after_it(empty_url: str) -> None:
    address = free_address()
    one = {"KAFKA_BROKERS": "k:9092", "KAFKA_TOPIC": "orders", "KAFKA_GROUP_ID": "readers"}
    with running(address, LAGSCALE_DATABASE_URL=empty_url, **one) as process:
        eventually(lambda: status(address, "/livez") == 200)
        assert status(address, "/readyz") == 503
        assert status(address, "/v1/tenants") == 503
        migrate(empty_url)
        eventually(lambda: status(address, "/readyz") == 200)
        # The environment's monitor is registered as soon as that is possible.
        eventually(lambda: status(address, "/v1/tenants/default/monitors/orders") == 200)
        assert status(address, "/v1/tenants/default/monitors/orders/verdict") == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert process.stderr is not None
        logs = process.stderr.read()
    assert ADMIN not in logs
    assert '"event": "request_served"' in logs
