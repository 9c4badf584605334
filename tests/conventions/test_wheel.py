"""The wheel: what it holds, and that each door opens with no more than what its image installs.

Proven: the wheel is complete, its entry points lead to functions, and what a service's lock names suffices to import the
service and print its help. The packages are the installed ones, linked, so nothing is said of downloads.
"""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conventions.services import SCRIPTS

ROOT = Path(__file__).parents[2]
#: Runs a script's function the way its wrapper in `bin` does, with one folder beside the standard library.
DOOR = """
import sys
from importlib.metadata import entry_points
sys.path.insert(0, sys.argv[1])
(door,) = entry_points(group="console_scripts", name=sys.argv[2])
sys.argv = [sys.argv[2], "--help"]
sys.exit(door.load()())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    return path


def locked(extra: str) -> set[str]:
    """Names of what a service's lock installs."""
    text = (ROOT / "requirements" / f"{extra}.lock").read_text(encoding="utf-8")
    return set(re.findall(r"^([\w.-]+)(?:\[[^\]]*\])?==", text, re.MULTILINE))


def needed(wheel: Distribution, extra: str) -> dict[str, Distribution]:
    """Name -> distribution of all that the extra asks for, directly or not."""
    found: dict[str, Distribution] = {}
    todo = [(wheel, frozenset({extra}))]
    seen: set[tuple[str, frozenset[str]]] = set()
    while todo:
        item, extras = todo.pop()
        for text in item.requires or ():
            requirement = Requirement(text)
            marker = requirement.marker
            if marker is not None and not any(marker.evaluate({"extra": one}) for one in extras | {""}):
                continue
            key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
            if key not in seen:
                seen.add(key)
                found[key[0]] = distribution(requirement.name)
                todo.append((found[key[0]], key[1]))
    return found


def furnish(folder: Path, wheel: Path, names: Iterable[str]) -> None:
    """A folder with the wheel's content and links to the named distributions, and nothing else."""
    with zipfile.ZipFile(wheel) as content:
        content.extractall(folder)
    for item in map(distribution, names):
        for top in {path.parts[0] for path in item.files or () if path.parts[0] not in {"..", "__pycache__"}}:
            if not (folder / top).exists():
                (folder / top).symlink_to(Path(str(item.locate_file(top))))


def test_the_wheel_holds_the_packages_the_statements_and_the_migrations(wheel: Path, tracked: tuple[str, ...]) -> None:
    with zipfile.ZipFile(wheel) as content:
        held = {name for name in content.namelist() if ".dist-info/" not in name}
    wanted = {path for path in tracked if path.startswith(("lagscale/", "services/"))}
    wanted |= {
        path.replace("migrations/", "lagscale/store/migrations/", 1)
        for path in tracked
        if path.startswith("migrations/")
    }
    assert wanted - held == set()
    assert {name for name in held if not name.startswith(("lagscale/", "services/"))} == set()


def test_every_door_opens_with_what_its_lock_names(wheel: Path, tmp_path: Path) -> None:
    opened = {}
    for script, extra in SCRIPTS.items():
        folder = tmp_path / extra
        furnish(folder, wheel, locked(extra))
        # Without `site`, and isolated: neither the environment's packages nor the repository can be imported.
        opened[script] = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", DOOR, str(folder), script],
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={"PATH": "/usr/bin:/bin", "COLUMNS": "100"},
        )  # fmt: skip
    said = {script: (process.communicate(timeout=60)[0], process.returncode) for script, process in opened.items()}
    for script, (text, code) in said.items():
        assert code == 0, f"{script}: {text}"
        assert "usage" in text.lower(), f"{script}: {text}"


def test_every_extra_asks_for_what_its_lock_names(wheel: Path, tmp_path: Path) -> None:
    furnish(tmp_path, wheel, ())
    (info,) = tmp_path.glob("*.dist-info")
    for extra in SCRIPTS.values():
        asked = set(needed(Distribution.at(info), extra))
        assert {canonicalize_name(name) for name in locked(extra)} == asked, extra


def test_the_scripts_are_those_of_the_project(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        (name,) = (name for name in content.namelist() if name.endswith("entry_points.txt"))
        text = content.read(name).decode()
    assert {line.split(" = ")[0] for line in text.splitlines() if " = " in line} == set(SCRIPTS)


def test_the_locks_agree(tracked: tuple[str, ...]) -> None:
    pins = {
        path: {
            line.split(" ")[0] for line in (ROOT / path).read_text(encoding="utf-8").splitlines() if "==" in line[:60]
        }
        for path in tracked
        if path.endswith(".lock")
    }
    assert {f"requirements/{extra}.lock" for extra in SCRIPTS.values()} <= set(pins)
    for path, pinned in pins.items():
        assert pinned - pins["requirements/dev.lock"] == set(), path
