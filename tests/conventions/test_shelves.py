"""How tests are kept: no sleeps, no skips, on a shelf, and marked by what they cost."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

SHELVES = {"conventions", "support", "unit", "contract", "integration", "fuzz", "spark", "e2e", "bench", "data"}
#: Above all shelves; what several shelves share otherwise lies in tests/support.
SHARED = {"tests/__init__.py", "tests/conftest.py"}
SKIPPING = {"skip", "skipif", "importorskip", "xfail"}


def of_shelves(modules: Mapping[str, ast.Module]) -> Iterator[tuple[str, ast.Module]]:
    yield from ((path, tree) for path, tree in modules.items() if path.startswith("tests/"))


def test_every_test_lies_on_a_shelf(tracked: tuple[str, ...]) -> None:
    strays = [
        path
        for path in tracked
        if path.startswith("tests/") and path not in SHARED and path.split("/")[1] not in SHELVES
    ]
    assert strays == []


def test_unit_tests_lie_where_their_module_lies(root: Path, tracked: tuple[str, ...]) -> None:
    folders = {str(PurePosixPath(path).parent) for path in tracked if path.startswith("tests/unit/")}
    strays = []
    for folder in folders - {"tests/unit"}:
        place = folder.removeprefix("tests/unit/")
        if not any((root / top / place).is_dir() for top in ("lagscale", "services", "")):
            strays.append(folder)
    assert strays == []


def test_nothing_sleeps(modules: Mapping[str, ast.Module]) -> None:
    slept = [
        f"{path}:{node.lineno}"
        for path, tree in of_shelves(modules)
        for node in ast.walk(tree)
        if (isinstance(node, ast.ImportFrom) and node.module == "time" and "sleep" in {a.name for a in node.names})
        or (isinstance(node, ast.Attribute) and ast.unparse(node) == "time.sleep")
    ]
    assert slept == []


def test_nothing_is_skipped(modules: Mapping[str, ast.Module]) -> None:
    skipped = [
        f"{path}:{node.lineno}"
        for path, tree in of_shelves(modules)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in SKIPPING
        and ast.unparse(node).startswith(("pytest.", "unittest."))
    ]
    assert skipped == []


def test_costly_shelves_are_marked(modules: Mapping[str, ast.Module]) -> None:
    unmarked = []
    for path, tree in of_shelves(modules):
        shelf, name = path.split("/")[1], path.split("/")[-1]
        if shelf in {"contract", "integration", "fuzz", "spark", "e2e"} and name.startswith("test_"):
            text = ast.unparse(tree)
            if not any(f"pytest.mark.{mark}" in text for mark in ("contract", "integration", "spark", "e2e", "fuzz")):
                unmarked.append(path)
    assert unmarked == []
