"""Slots of probes: one per cluster, two per tenant, a bounded number in all; and what a crash or a hang gives."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from lagscale.errors import PreflightRunning, QuotaExceeded
from lagscale.kafka.probe import runner
from lagscale.kafka.probe.result import ProbeRequest, ProbeResult
from lagscale.kafka.probe.runner import ProbeRunner

REQUEST = ProbeRequest((), {}, {}, "", 1.0)


class Held:
    """Looks that end when they are let go."""

    def __init__(self) -> None:
        self._running = 0
        self._changed = asyncio.Condition()
        self._gate = asyncio.Event()

    async def run(self, _question: ProbeRequest) -> ProbeResult:
        async with self._changed:
            self._running += 1
            self._changed.notify_all()
        await self._gate.wait()
        return ProbeResult(problem="seen")

    async def begun(self, number: int) -> None:
        async with asyncio.timeout(5), self._changed:
            await self._changed.wait_for(lambda: self._running >= number)

    def let_go(self) -> None:
        self._gate.set()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    made = Held()
    monkeypatch.setattr(runner, "_run", made.run)
    return made


async def test_a_cluster_is_looked_at_once_at_a_time(held: Held) -> None:
    probe_runner = ProbeRunner(seconds=5)
    first = asyncio.create_task(probe_runner.run(1, 10, REQUEST))
    await held.begun(1)
    with pytest.raises(PreflightRunning, match="already running"):
        await probe_runner.run(1, 10, REQUEST)
    wait_for_slot = asyncio.create_task(probe_runner.run(1, 10, REQUEST, wait_for_slot=True))
    held.let_go()
    assert (await first).problem == (await wait_for_slot).problem == "seen"


async def test_a_tenant_has_two_looks_and_all_have_a_bounded_number(held: Held) -> None:
    probe_runner = ProbeRunner(seconds=0.05, max_concurrent=3)
    tasks = [asyncio.create_task(probe_runner.run(1, cluster, REQUEST)) for cluster in (10, 11)]
    await held.begun(2)
    with pytest.raises(QuotaExceeded, match="for this tenant"):
        await probe_runner.run(1, 12, REQUEST)
    tasks.append(asyncio.create_task(probe_runner.run(2, 20, REQUEST)))
    await held.begun(3)
    with pytest.raises(QuotaExceeded, match="concurrent cluster probes"):
        await probe_runner.run(3, 30, REQUEST, wait_for_slot=True)
    held.let_go()
    assert len(await asyncio.gather(*tasks)) == 3


async def test_a_request_that_is_given_up_gives_its_turn_back(held: Held) -> None:
    probe_runner = ProbeRunner(seconds=5, max_concurrent=1)
    task = asyncio.create_task(probe_runner.run(1, 10, REQUEST))
    await held.begun(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    held.let_go()
    assert (await probe_runner.run(1, 10, REQUEST)).problem == "seen"


def program(folder: Path, text: str) -> str:
    """A program in place of Python."""
    made = folder / "program"
    made.write_text(f"#!/bin/sh\n{text}\n")
    made.chmod(0o755)
    return str(made)


@pytest.mark.parametrize("text", ["kill -ABRT $$", "exit 1", "echo no JSON"])
async def test_a_look_that_breaks_off_is_a_finding(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner.sys, "executable", program(tmp_path, text))
    found = await ProbeRunner(seconds=5).run(1, 10, REQUEST)
    assert found.problem == "failed"
    assert "crashed" in found.text


async def test_a_look_that_hangs_is_ended_and_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = tmp_path / "pid"
    monkeypatch.setattr(runner.sys, "executable", program(tmp_path, f"echo $$ > {noted}; exec /bin/sleep 60"))
    monkeypatch.setattr(runner, "_STARTUP_SECONDS", 0.5)
    found = await ProbeRunner(seconds=0.5).run(1, 10, ProbeRequest((), {}, {}, "", 0.5))
    assert found.problem == "timeout"
    with pytest.raises(ProcessLookupError):
        os.kill(int(noted.read_text()), signal.SIG_DFL)


async def test_a_look_has_nothing_of_the_service_s_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAGSCALE_SECRET_KEYS", "canary-of-the-keys")
    told = tmp_path / "told"
    monkeypatch.setattr(runner.sys, "executable", program(tmp_path, f'set > {told}; echo "$@" >> {told}'))
    request = ProbeRequest((), {}, {"password": "canary-of-a-password"}, "", 1.0)
    await ProbeRunner(seconds=1).run(1, 10, request)
    assert "-m lagscale.kafka.probe" in told.read_text()
    assert "canary" not in told.read_text()
