"""Secrets of the command's environment and files show in nothing that it prints: help, errors, or the trace of a defect."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from services.cli import __main__ as cli
from tests.conventions.pages import settings

CANARY = "C4nary-0c1i-in-the-environment"
ROOT = Path(__file__).parents[3]
SHOP = f"""
kind: Tenant
name: shop
---
kind: Cluster
tenant: shop
name: main
bootstrapServers: [127.0.0.1:9]
security: {{protocol: SASL_SSL, mechanism: PLAIN, username: u}}
secrets: {{password: {CANARY}}}
"""
#: Breaks where the command holds its key, and the body that it sends.
BROKEN = """
import sys, httpx
def broken(self, method, url, **rest):
    secret = dict(rest)
    raise RuntimeError("a defect")
httpx.Client.request = broken
from services.cli.__main__ import main
sys.exit(main())
"""


def paths() -> list[tuple[str, ...]]:
    """Every command and every group, as its words."""
    found: list[tuple[str, ...]] = [()]

    def walk(command: object, words: tuple[str, ...]) -> None:
        for name, inner in getattr(command, "commands", {}).items():
            found.append((*words, name))
            walk(inner, (*words, name))

    walk(typer.main.get_command(cli.app), ())
    return found


@pytest.mark.parametrize("words", paths(), ids=" ".join)
def test_help_shows_no_value_of_the_environment(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for setting in settings():
        monkeypatch.setenv(setting.name, CANARY)
    monkeypatch.setattr(sys, "argv", ["lagscale", *words, "--help"])
    assert cli.main() == 0
    out, err = capsys.readouterr()
    assert "Usage" in out
    assert CANARY not in out + err


def ran(program: str, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LAGSCALE_")}
    ours = {"LAGSCALE_API_KEY": CANARY, "LAGSCALE_API_URL": "http://127.0.0.1:9", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], env=kept | ours, cwd=ROOT, input=text, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "arguments", [("verdict", "shop/orders"), ("get", "tenants"), ("apply", "-f", "-"), ("diff", "-f", "-")]
)
def test_the_trace_of_a_defect_holds_no_values(arguments: tuple[str, ...]) -> None:
    ended = ran(BROKEN, *arguments, text=SHOP)
    assert ended.returncode not in {0, 2}
    assert "a defect" in ended.stderr
    assert CANARY not in ended.stdout + ended.stderr


@pytest.mark.parametrize(
    "text", [SHOP, SHOP.replace("name: main", "name: [main]"), SHOP + "]", SHOP.replace(": u", ":")]
)
def test_a_file_that_is_refused_shows_no_secret_of_it(text: str) -> None:
    ended = ran("import sys; from services.cli.__main__ import main; sys.exit(main())", "apply", "-f", "-", text=text)
    assert ended.returncode
    assert "lagscale" in ended.stderr
    assert CANARY not in ended.stdout + ended.stderr
