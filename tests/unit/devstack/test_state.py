"""What survives between runs: whole downloads, ports and keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from devstack.cache import fetch_once
from devstack.server import free_port
from devstack.state import SavedState


def _fill(place: Path) -> None:
    (place / "part").write_text("whole")


def _break_off(place: Path) -> None:
    (place / "part").write_text("ha")
    raise KeyboardInterrupt


def _unwanted(_place: Path) -> None:
    raise AssertionError("it was there already")


def test_a_download_is_made_once(tmp_path: Path) -> None:
    place = fetch_once("thing", _fill, tmp_path)
    assert (place / "part").read_text() == "whole"
    assert fetch_once("thing", _unwanted, tmp_path) == place


def test_an_interrupted_download_is_not_taken_for_whole(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        fetch_once("thing", _break_off, tmp_path)
    assert not (tmp_path / "thing").exists()
    assert (fetch_once("thing", _fill, tmp_path) / "part").read_text() == "whole"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["thing", "thing.lock"]


def test_ports_and_keys_outlive_a_run(tmp_path: Path) -> None:
    file = tmp_path / "up" / "kept.json"
    first = SavedState(file)
    port, key = first.port("api"), first.text("admin_key", "one")
    second = SavedState(file)
    assert (second.port("api"), second.text("admin_key", "two")) == (port, key)
    assert file.stat().st_mode & 0o077 == 0


def test_a_port_that_somebody_has_taken_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "kept.json"
    port = SavedState(file).port("api")
    monkeypatch.setattr("devstack.state.is_free", lambda _port: False)
    other = SavedState(file).port("api")
    monkeypatch.undo()
    assert other != port
    assert SavedState(file).port("api") == other


def test_no_port_is_given_out_twice() -> None:
    ports = [free_port() for _ in range(50)]
    assert len(set(ports)) == 50
