"""Statements and migrations: one sentence each, casts, tenants, polite names."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from lagscale.store import queries
from lagscale.store.queries import load

Statements = Mapping[str, str]

#: Statement -> why it names no tenant.
TENANTLESS: Mapping[str, str] = {
    "registry_version": "one number for all registrations; it tells nothing of any tenant",
    "scrape_clock": "the clock, and one number for all registrations",
    "scrape_future": "one scraper writes for all tenants; each row carries its own",
    "scrape_insert": "one scraper writes for all tenants; each row carries its own",
    "scrape_lease_check": "one lease for the whole system",
    "scrape_lease_acquire": "one lease for the whole system",
    "scrape_lease_release": "one lease for the whole system",
    "scrape_topic_ids": "one scraper writes for all tenants, and target ids come from its own plan",
    "mark_asked": "ids come from registrations of all tenants that a replica answered, and only a time is written",
}
FILE_NAME = re.compile(
    r"\d{4}_(add|alter|create|drop|fill|grant|index|move|rename|repair|revoke|set|split|widen)_\w+\.py"
)


@pytest.fixture(scope="module")
def statements(tracked: tuple[str, ...]) -> Statements:
    """Name -> text of every statement of the hot path, with its parts in place."""
    names = [Path(path).stem for path in tracked if path.startswith("lagscale/store/") and path.endswith(".sql")]
    return {name: load(name) for name in names if not name.startswith("part_")}


def without_comments(text: str) -> str:
    return re.sub(r"--[^\n]*", "", text)


def test_every_statement_begins_with_a_sentence(statements: Statements) -> None:
    wrong = [name for name, text in statements.items() if not re.match(r"-- [A-Z][^\n]+(\n-- [^\n]+)*[.:]\n", text)]
    assert wrong == []


def test_no_bit_of_a_flag_is_a_bare_number(statements: Statements) -> None:
    wrong = [
        name for name in queries.statements() if re.search(r"[&|] \d{1,3}\b", without_comments(queries.read(name)))
    ]
    assert statements
    assert wrong == [], "name the bit as a slot, `:flag.LOST`"


def test_every_parameter_is_cast(statements: Statements) -> None:
    wrong = {
        name: bare
        for name, text in statements.items()
        if (bare := re.findall(r"%(?:\(\w+\))?[sbt](?!::)", without_comments(text)))
    }
    assert wrong == {}


def test_every_statement_names_its_tenant_or_says_why_not(statements: Statements) -> None:
    wrong = [
        name for name, text in statements.items() if "tenant" not in without_comments(text) and name not in TENANTLESS
    ]
    assert wrong == []


def test_no_exception_from_naming_a_tenant_is_stale() -> None:
    assert {name for name in TENANTLESS if name not in queries.statements()} == set()


def test_every_statement_is_loaded_by_its_name(statements: Statements, product: Mapping[str, ast.Module]) -> None:
    strings = {
        node.value
        for tree in product.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert [name for name in statements if name not in strings] == []


def test_every_part_is_part_of_a_statement(tracked: tuple[str, ...]) -> None:
    texts = {Path(path).stem: Path(path).read_text(encoding="utf-8") for path in tracked if path.endswith(".sql")}
    parts = [name for name in texts if name.startswith("part_")]
    assert parts, "no statement has parts: drop this test"
    assert [name for name in parts if not any(f"-- include {name}\n" in text for text in texts.values())] == []


def test_migrations_have_polite_names(tracked: tuple[str, ...]) -> None:
    names = [Path(path).name for path in tracked if path.startswith("migrations/versions/")]
    assert names, "no migration is tracked"
    assert [name for name in names if not FILE_NAME.fullmatch(name)] == []


def test_migrations_are_marked_pre_or_post(modules: Mapping[str, ast.Module]) -> None:
    unmarked = [
        path
        for path, tree in modules.items()
        if path.startswith("migrations/versions/") and not re.search(r"\b(pre|post): ", ast.get_docstring(tree) or "")
    ]
    assert unmarked == []


def test_migrations_follow_one_another(modules: Mapping[str, ast.Module]) -> None:
    before = None
    for path in sorted(path for path in modules if path.startswith("migrations/versions/")):
        told = {
            node.targets[0].id: ast.literal_eval(node.value)
            for node in modules[path].body
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id in {"revision", "down_revision"}
        }
        assert told == {"revision": Path(path).name[:4], "down_revision": before}, path
        before = told["revision"]


def test_migrations_import_nothing_of_ours(modules: Mapping[str, ast.Module]) -> None:
    ours = [
        path
        for path, tree in modules.items()
        if path.startswith("migrations/") and any(name.startswith(("lagscale", "services")) for name in _imports(tree))
    ]
    assert ours == []


def _imports(tree: ast.Module) -> list[str]:
    found = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    return found + [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
