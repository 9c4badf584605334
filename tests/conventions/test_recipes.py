"""CONTRIBUTING's recipes work: with a dummy of each kind added as they say, the conventions still pass."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.conventions.recipes import RECIPES, ROOT, Copy, copy_tracked, track

#: Left out in the copy: they render or build what the recipe's commands would have, or are this file itself.
_LEFT_OUT = ("test_recipes.py", "test_wheel.py", "test_pictures.py")


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mapping[str, set[str]]]:
    """The scratch copy with all dummies, and which files each recipe edited by hand."""
    root = tmp_path_factory.mktemp("copy")
    copy_tracked(root)
    files = {}
    for name, carry_out in RECIPES.items():
        copy = Copy(root)
        carry_out(copy)
        files[name] = copy.edited
    track(root)
    return root, files


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=root,
        env={"PYTHONPATH": str(root), "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(root)},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )


@pytest.mark.timeout(600)
def test_the_conventions_pass_with_a_dummy_of_each_kind(edited: tuple[Path, Mapping[str, set[str]]]) -> None:
    root, _ = edited
    rendered = run(root, "-m", "tests.conventions.pages")
    assert rendered.returncode == 0, rendered.stderr
    track(root)
    left_out = [f"--ignore=tests/conventions/{name}" for name in _LEFT_OUT]
    done = run(root, "-m", "pytest", "tests/conventions", "-q", "-x", "-p", "no:cacheprovider", *left_out)
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_tells_how_many_files_it_edits(recipe: str, edited: tuple[Path, Mapping[str, set[str]]]) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    told = re.search(rf"^\*\*{re.escape(recipe)}\*\* \((\d+) files", text, re.MULTILINE)
    assert told is not None, f"CONTRIBUTING has no recipe {recipe!r} with its number of files"
    assert len(edited[1][recipe]) == int(told[1]), sorted(edited[1][recipe])
