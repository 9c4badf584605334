"""Processes and folders of the stack: remembered, ended, swept away; and nobody else's."""

from __future__ import annotations

import fcntl
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from devstack.claims import Claim, sweep
from devstack.server import Server, ServerFailed, started_at, wait_until
from devstack.state import ProcessRegistry

_WAITS_FOR_EVER = [sys.executable, "-c", "import signal; signal.pause()"]


@contextmanager
def _running(folder: Path) -> Iterator[Server]:
    server = Server("waiter", folder / "waiter.log")
    server.spawn(_WAITS_FOR_EVER)
    try:
        yield server
    finally:
        server.kill()


def _reaped(server: Server) -> bool:
    return server.process is not None and server.process.poll() is not None


def test_a_process_is_alive_until_it_is_ended(tmp_path: Path) -> None:
    running = ProcessRegistry(tmp_path / "state.json")
    with _running(tmp_path) as server:
        running.record(server)
        running.save_facts({"API": "somewhere"})
        assert (running.alive(), running.exited()) == ({"waiter": server.pid}, [])
        assert running.facts == {"API": "somewhere"}
        assert running.end_all() == ["waiter"]
        wait_until(lambda: _reaped(server), 10, "it was not ended")
    assert (running.alive(), running.facts) == ({}, {})


def test_a_process_that_stands_still_is_ended_too(tmp_path: Path) -> None:
    running = ProcessRegistry(tmp_path / "state.json")
    with _running(tmp_path) as server:
        running.record(server)
        server.pause()
        assert running.end_all() == ["waiter"]
        wait_until(lambda: _reaped(server), 10, "it was not ended")


def test_a_stranger_with_the_same_process_id_is_left_alone(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    with _running(tmp_path) as stranger:
        started = started_at(stranger.pid)
        assert started is not None
        entry = {"pid": stranger.pid, "started": started - 1, "signal": int(signal.SIGKILL)}
        state.write_text(json.dumps({"processes": {"scaler": entry}}))
        running = ProcessRegistry(state)
        assert (running.alive(), running.exited()) == ({}, ["scaler"])
        assert running.end_all() == []
        assert not _reaped(stranger)


def test_what_is_remembered_is_for_the_owner_alone(tmp_path: Path) -> None:
    running = ProcessRegistry(tmp_path / "state.json")
    running.save_facts({"admin key": "secret"})
    assert (tmp_path / "state.json").stat().st_mode & 0o077 == 0


def test_a_server_that_ends_says_why(tmp_path: Path) -> None:
    server = Server("scaler", tmp_path / "scaler.log")
    server.spawn([sys.executable, "-c", "import sys; sys.exit('the address is taken')"])
    with pytest.raises(ServerFailed, match=r"scaler ended with 1:\n(.*\n)*the address is taken"):
        server.await_ready(lambda: False)
    server.stop()


def test_a_server_that_does_not_answer_in_time_says_so(tmp_path: Path) -> None:
    with _running(tmp_path) as server, pytest.raises(ServerFailed, match=r"waiter did not answer within 0\.1 s"):
        server.await_ready(lambda: False, 0.1)


def test_a_process_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    program = (
        "import os, pathlib, signal\n"
        "from devstack.server import Server\n"
        f"server = Server('waiter', pathlib.Path({str(tmp_path / 'log')!r}))\n"
        f"server.spawn({_WAITS_FOR_EVER!r})\n"
        "print(server.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    wait_until(lambda: started_at(int(done.stdout)) is None, 10, "it outlived its parent")


def test_a_held_folder_stays_and_a_released_one_goes(tmp_path: Path) -> None:
    claims, folder = tmp_path / "claims", tmp_path / "data"
    folder.mkdir()
    claim = Claim(folder, claims)
    assert sweep(claims) == []
    assert folder.exists()
    claim.release()
    assert not folder.exists()
    assert list(claims.iterdir()) == []


def test_a_claim_that_its_process_is_about_to_lock_is_left(tmp_path: Path) -> None:
    partial = tmp_path / "new.partial"
    partial.touch()
    assert sweep(tmp_path) == []
    assert partial.exists()


def test_what_a_killed_run_has_left_is_swept_away(tmp_path: Path) -> None:
    claims, folder = tmp_path / "claims", tmp_path / "data"
    claims.mkdir()
    folder.mkdir()
    with _running(tmp_path) as server:
        server.pause()
        left = {"folder": str(folder), "pid": server.pid, "started": started_at(server.pid)}
        (claims / "left").write_text(json.dumps(left))
        assert sweep(claims) == [folder]
        wait_until(lambda: _reaped(server), 10, "its server was left")
    assert not folder.exists()
    assert list(claims.iterdir()) == []


def test_sweeping_leaves_a_stranger_with_the_same_process_id_alone(tmp_path: Path) -> None:
    claims, folder = tmp_path / "claims", tmp_path / "data"
    claims.mkdir()
    with _running(tmp_path) as stranger:
        started = started_at(stranger.pid)
        assert started is not None
        (claims / "left").write_text(json.dumps({"folder": str(folder), "pid": stranger.pid, "started": started - 1}))
        sweep(claims)
        assert not _reaped(stranger)


def test_a_claim_of_another_run_is_not_swept(tmp_path: Path) -> None:
    claims, folder = tmp_path / "claims", tmp_path / "data"
    claims.mkdir()
    folder.mkdir()
    with (claims / "other").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        other.write(json.dumps({"folder": str(folder)}))
        other.flush()
        assert sweep(claims) == []
        assert folder.exists()
