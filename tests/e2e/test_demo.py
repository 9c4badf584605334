"""The first command of the README."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[2]


def test_the_demo_sees_all_of_it_and_leaves_nothing_behind() -> None:
    before = _processes_of_demos()
    done = subprocess.run(
        [sys.executable, "-m", "devstack.demo"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert "All steps passed." in done.stdout
    for step in ("registered", "calm", "spike", "sustained", "drained"):
        assert f" {step} " in done.stdout
    assert _processes_of_demos() <= before


def _processes_of_demos() -> set[int]:
    """Processes whose working directory or arguments are a demo's folder of this clone."""
    mark = str(ROOT / ".devstack" / "demo-")
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            text = (entry / "cmdline").read_bytes().decode(errors="replace") + str((entry / "cwd").readlink())
        except OSError:
            continue
        if mark in text:
            found.add(int(entry.name))
    return found
