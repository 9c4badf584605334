"""The layout: names and sizes of modules and folders, introductions, and where a vendor's package may be imported."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

import pytest

ATTIC = {
    "utils",
    "util",
    "common",
    "helpers",
    "helper",
    "misc",
    "base",
    "core",
    "manager",
    "managers",
    "models",
    "types",
}
MODULE_LINES = 400
#: A test module holds one subject's whole life, fixtures included; split across files it would be told twice.
TEST_LINES = 400
FUNCTION_LINES = 50
FOLDER_FILES = 18
#: A module of fewer lines that only one other imports says why it stands alone.
TINY_LINES = 60
ALONE = re.compile(r"(?i)\b(stands? alone|stands? apart|on its own|of its own)\b")
ENTRY_LINES = 120

#: path, or path::function -> why it may be longer.
LONGER: Mapping[str, str] = {
    "tests/contract/histories.py::round": "the words of the histories' table, and most of it explains them",
}

#: Vendor package -> where the product may import it.
ROOMS: Mapping[str, tuple[str, ...]] = {
    "psycopg": ("lagscale/store/",),
    "psycopg_pool": ("lagscale/store/",),
    "sqlalchemy": ("lagscale/store/",),
    "alembic": ("lagscale/store/",),
    "grpc": ("services/scaler/",),
    "grpc_health": ("services/scaler/",),
    "grpc_reflection": ("services/scaler/",),
    "fastapi": ("services/api/",),
    "confluent_kafka": ("services/scraper/kafka/", "lagscale/kafka/"),
    "pyspark": ("services/scraper/spark/", "services/pipeline/"),
    "typer": ("services/cli/",),
    "rich": ("services/cli/",),
}
#: The domain decides by its arguments alone.
#: Arithmetic too, from outside the standard library: patterns that are matched in linear time.
ARITHMETIC = {"re2"}
IMPURE = {"asyncio", "logging", "os", "time", "random", "socket", "subprocess", "threading", "io", "pathlib", "environ"}


def imported(tree: ast.AST) -> Iterator[str]:
    """Dotted names of all modules that a module imports, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_no_module_is_an_attic(tracked: tuple[str, ...]) -> None:
    named = [
        path for path in tracked if path.endswith(".py") and ATTIC & set(PurePosixPath(path).with_suffix("").parts)
    ]
    assert named == []


def test_modules_are_small_rooms(root: Path, modules: Mapping[str, ast.Module]) -> None:
    lines = {path: len((root / path).read_text(encoding="utf-8").splitlines()) for path in modules}
    allowed = {path: TEST_LINES if path.startswith("tests/") else MODULE_LINES for path in lines}
    assert {path: n for path, n in lines.items() if n > allowed[path] and path not in LONGER} == {}


def test_folders_hold_few_files(product: Mapping[str, ast.Module]) -> None:
    files = Counter(str(PurePosixPath(path).parent) for path in product if not path.endswith("__init__.py"))
    assert {folder: number for folder, number in files.items() if number > FOLDER_FILES} == {}


def test_a_tiny_module_with_one_importer_says_why_it_stands_alone(
    root: Path, product: Mapping[str, ast.Module]
) -> None:
    names = {path.removesuffix(".py").replace("/", "."): path for path in product}
    importers: dict[str, set[str]] = {path: set() for path in product}
    for path, tree in product.items():
        for name in imported_modules(tree):
            if name in names:
                importers[names[name]].add(path)
    silent = [
        path
        for path, users in importers.items()
        if len(users) == 1
        # Each subject of the API, and each service, has them, whatever their size.
        and PurePosixPath(path).name not in {"routes.py", "schemas.py", "settings.py", "metrics.py"}
        and not path.endswith(("__init__.py", "__main__.py"))
        and len((root / path).read_text(encoding="utf-8").splitlines()) < TINY_LINES
        and not ALONE.search(ast.get_docstring(product[path]) or "")
    ]
    assert silent == []


def imported_modules(tree: ast.AST) -> Iterator[str]:
    """As `imported`, and each imported name as a module of its package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
    yield from imported(tree)


def test_a_room_named_spark_is_sparks(product: Mapping[str, ast.Module]) -> None:
    strangers = [
        path
        for path, tree in product.items()
        if PurePosixPath(path).parent.name == "spark"
        and not path.endswith("__init__.py")
        and not any(name.split(".")[0] == "pyspark" for name in imported(tree))
    ]
    assert strangers == []


def test_functions_are_short(modules: Mapping[str, ast.Module]) -> None:
    long = {}
    for path, tree in modules.items():
        for function in functions(tree):
            length = (function.end_lineno or function.lineno) - function.lineno + 1
            allowed = ENTRY_LINES if function.name == "main" and path.endswith("__main__.py") else FUNCTION_LINES
            if length > allowed and f"{path}::{function.name}" not in LONGER:
                long[f"{path}::{function.name}"] = length
    assert long == {}


def test_no_exception_from_size_is_stale(modules: Mapping[str, ast.Module]) -> None:
    known = set(modules) | {f"{path}::{f.name}" for path, tree in modules.items() for f in functions(tree)}
    assert set(LONGER) <= known


def test_modules_introduce_themselves(modules: Mapping[str, ast.Module]) -> None:
    silent = []
    for path, tree in modules.items():
        text = ast.get_docstring(tree) or ""
        is_empty_package = path.endswith("__init__.py") and not tree.body
        if not is_empty_package and not text.strip():
            silent.append(path)
    assert silent == []


def test_every_package_has_an_init(root: Path, product: Mapping[str, ast.Module]) -> None:
    folders = {parent for path in product for parent in PurePosixPath(path).parents if parent.name}
    assert [str(folder) for folder in folders if not (root / folder / "__init__.py").exists()] == []


@pytest.mark.parametrize("vendor", ROOMS)
def test_each_vendor_keeps_to_its_room(vendor: str, product: Mapping[str, ast.Module]) -> None:
    strays = [
        path
        for path, tree in product.items()
        if any(name.split(".")[0] == vendor for name in imported(tree)) and not path.startswith(ROOMS[vendor])
    ]
    assert strays == []


def test_sqlalchemy_is_for_administration(product: Mapping[str, ast.Module]) -> None:
    allowed = ("lagscale/store/registry/", "lagscale/store/migrate.py")
    strays = [
        path
        for path, tree in product.items()
        if any(name.split(".")[0] == "sqlalchemy" for name in imported(tree)) and not path.startswith(allowed)
    ]
    assert strays == []


def test_the_domain_is_arithmetic(product: Mapping[str, ast.Module]) -> None:
    faults = []
    for path, tree in product.items():
        if not path.startswith("lagscale/domain/"):
            continue
        for name in imported(tree):
            first = name.split(".")[0]
            ours = name == "lagscale.errors" or name.startswith("lagscale.domain") or first in ARITHMETIC
            if not ours and (first not in sys.stdlib_module_names or first in IMPURE):
                faults.append(f"{path} imports {name}")
        for node in ast.walk(tree):
            if isinstance(node, ast.Await | ast.AsyncFunctionDef):
                faults.append(f"{path}:{node.lineno} awaits")
            if isinstance(node, ast.Attribute) and node.attr in {"now", "utcnow", "today"}:
                faults.append(f"{path}:{node.lineno} reads a clock")
    assert faults == []


def test_services_read_the_environment_in_settings_and_main_only(product: Mapping[str, ast.Module]) -> None:
    allowed = {"settings.py", "__main__.py"}
    readers = [
        f"{path}:{node.lineno}"
        for path, tree in product.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in {"environ", "getenv"}
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
        and PurePosixPath(path).name not in allowed
    ]
    assert readers == []


def test_import_contracts_hold(root: Path) -> None:
    linter = shutil.which("lint-imports", path=str(Path(sys.executable).parent))
    assert linter is not None
    done = subprocess.run([linter, "--no-cache"], cwd=root, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
