"""Runs `lagscale` in the process of the test."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from services.cli import __main__ as cli


@dataclass(frozen=True)
class CommandResult:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


Command = Callable[..., CommandResult]


def run_main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run `lagscale` with these arguments and return its exit code; the logging of the test run stays."""
    monkeypatch.setattr(cli, "configure_logging", lambda *_, **__: None)
    monkeypatch.setattr(sys, "argv", ["lagscale", *arguments])
    return cli.main()


def run_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> CommandResult:
    """Run `lagscale` with these arguments; earlier output is dropped."""
    capsys.readouterr()
    code = run_main(monkeypatch, *arguments)
    return CommandResult(code, *capsys.readouterr())
