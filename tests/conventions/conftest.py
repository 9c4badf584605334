"""What the house tests look at: the repository's root, its tracked files, and its parsed Python modules."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conventions.pages import one_monitor, settings

ROOT = Path(__file__).parents[2]
GENERATED = "_pb2"


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root."""
    return ROOT


@pytest.fixture(scope="session")
def tracked() -> tuple[str, ...]:
    """Paths of all tracked files that exist, from the root."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return tuple(path for path in listed.split("\0") if path and (ROOT / path).is_file())


@pytest.fixture(scope="session")
def modules(tracked: tuple[str, ...]) -> Mapping[str, ast.Module]:
    """Path -> syntax tree of every tracked Python file that a person wrote."""
    return {
        path: ast.parse((ROOT / path).read_text(encoding="utf-8"), path)
        for path in tracked
        if path.endswith(".py") and GENERATED not in path
    }


@pytest.fixture(scope="session")
def product(modules: Mapping[str, ast.Module]) -> Mapping[str, ast.Module]:
    """The modules that are in the wheel."""
    return {path: tree for path, tree in modules.items() if path.startswith(("lagscale/", "services/"))}


@pytest.fixture(scope="session")
def kustomized() -> Callable[[str], list[dict[str, Any]]]:
    """Builds a kustomization with kubectl, offline, and gives its objects."""
    built: dict[str, list[dict[str, Any]]] = {}

    def build(folder: str) -> list[dict[str, Any]]:
        if folder not in built:
            done = subprocess.run(
                [str(Path(sys.executable).parent / "kubectl"), "kustomize", folder],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
            assert done.returncode == 0, done.stderr
            built[folder] = list(yaml.safe_load_all(done.stdout))
        return built[folder]

    return build


@pytest.fixture(scope="session")
def compose() -> dict[str, Any]:
    """The Compose file with its anchors resolved."""
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    return loaded


@pytest.fixture(scope="session")
def settings_of() -> Callable[[str], set[str]]:
    """The names of all variables that a service reads."""
    one = {setting.name for setting in one_monitor()}

    def names(service: str) -> set[str]:
        return {setting.name for setting in settings() if setting.service in {"all", service}} | one

    return names
