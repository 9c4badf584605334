"""Documentation against code, both ways: every setting, key, metric and command has a heading, and none is stale."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import typer
from fastapi import APIRouter
from fastapi.routing import APIRoute

from lagscale.domain.explain.decision_diff import ACTIVATION, LAST_KNOWN, TIME_LAG, DiffReason
from lagscale.domain.policy.keys import KEYS
from lagscale.domain.state_codes import StateCode
from lagscale.domain.verdict.value import ValueRule
from lagscale.settings import RENAMED, SETTING_NAMES
from services.scaler.triggers.metadata import TRIGGER_KEYS
from tests.conventions.pages import PAGES as RENDERED
from tests.conventions.pages import metrics_of, one_monitor, settings

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted((*DOCS.rglob("*.md"), *ROOT.glob("*.md")))


def headings(page: str, pattern: str) -> set[str]:
    """What stands in backticks in the page's headings and matches."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"^#{2,4} .*$", text, re.MULTILINE)
    return {name for line in found for name in re.findall(r"`([^`]+)`", line) if re.fullmatch(pattern, name)}


def test_pages_are_rendered_from_the_code() -> None:
    # To renew them: .venv/bin/python -m tests.conventions.pages
    stale = [page for page, render in RENDERED.items() if (DOCS / page).read_text(encoding="utf-8") != render()]
    assert stale == []


def test_every_setting_has_a_heading_and_none_is_stale() -> None:
    told = headings("settings.md", r"[A-Z][A-Z_]+")
    assert told == {setting.name for setting in (*settings(), *one_monitor())}


def test_the_table_of_names_holds_every_setting_and_no_other() -> None:
    assert {setting.name for setting in settings()} == SETTING_NAMES


def test_the_changelog_lists_every_renamed_setting() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^\s*\| `(LAGSCALE_\w+)` \| `(LAGSCALE_\w+)` \|$", text, re.MULTILINE)) == RENAMED


def test_every_setting_is_described() -> None:
    assert [setting.name for setting in (*settings(), *one_monitor()) if len(setting.description) < 15] == []


def test_every_key_has_a_heading_and_none_is_stale() -> None:
    assert headings("metadata.md", r"\w+") == {key.name for key in KEYS} | {key.name for key in TRIGGER_KEYS}


def test_every_metric_has_a_heading_and_none_is_stale(product: Mapping[str, ast.Module]) -> None:
    registered = {metric.name for tree in product.values() for metric in metrics_of(tree)}
    assert headings("metrics.md", r"lagscale_\w+") == registered


def test_metrics_are_named_after_their_service_and_described(product: Mapping[str, ast.Module]) -> None:
    for path, tree in product.items():
        for metric in metrics_of(tree):
            assert metric.name.startswith(f"lagscale_{path.split('/')[1]}_"), f"{path}: {metric.name}"
            assert len(metric.help) >= 15, metric.name


def commands(app: typer.Typer) -> set[str]:
    """Full names of all commands, groups resolved."""
    root = typer.main.get_command(app)
    found: set[str] = set()

    def walk(command: Any, name: str) -> None:
        inner = getattr(command, "commands", None)
        for child, item in (inner or {}).items():
            walk(item, f"{name} {child}")
        if not inner:
            found.add(name)

    walk(root, "lagscale")
    return found


def test_every_command_has_a_heading_and_none_is_stale() -> None:
    module = importlib.import_module("services.cli.__main__")
    app = vars(module)["app"]
    assert isinstance(app, typer.Typer)
    told = {re.sub(r" [A-Z\[<-].*", "", name) for name in headings("cli.md", r"lagscale .+")}
    assert told == commands(app)


def test_every_route_of_the_api_is_told_and_none_is_stale() -> None:
    served = {
        f"{method} {route.path}"
        for path in (ROOT / "services" / "api").glob("*/*.py")
        for router in vars(importlib.import_module(f"services.api.{path.parent.name}.{path.stem}")).values()
        if isinstance(router, APIRouter)
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([A-Z]+ /[^`?]*)`", text, re.MULTILINE)) == served


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(file), f"{page.name}: {target}"


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    found = re.findall(r"^#{1,6} (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in found}


def test_every_page_is_on_the_map() -> None:
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    assert [page.name for page in DOCS.glob("*.md") if page.name != "index.md" and f"({page.name})" not in text] == []
    listed = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    decisions = [page.name for page in (DOCS / "decisions").glob("[0-9]*.md")]
    assert decisions
    assert [name for name in decisions if f"({name})" not in listed] == []


def test_decisions_say_context_decision_and_price() -> None:
    for page in (DOCS / "decisions").glob("[0-9]*.md"):
        text = page.read_text(encoding="utf-8")
        assert re.findall(r"^\*\*(\w+)\.\*\*", text, re.MULTILINE) == ["Context", "Decision", "Price"], page.name
        assert len(text.splitlines()) <= 60, f"{page.name} is longer than a page"


def test_the_readme_is_short_and_has_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    assert re.search(r"^make demo\b", text, re.MULTILINE)
    assert re.search(r"^make test\b", text, re.MULTILINE)


def test_targets_of_make_that_are_told_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        told = re.findall(r"`make ([a-z]+)`", text) + re.findall(r"^make ([a-z]+)", text, re.MULTILINE)
        assert set(told) <= targets, page.name


def test_the_changelog_begins_with_what_an_operator_must_do() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for version in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        assert re.search(r"^### (.+)$", version, re.MULTILINE)[1] == "What you must do"  # type: ignore[index]


def test_every_exit_code_is_told() -> None:
    exits = importlib.import_module("services.cli.exits")
    codes = {*exits.EXIT_CODES.values(), *exits.COMMAND_EXIT_CODES.values()}
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)} == codes | {0}


def test_every_code_that_keda_gets_is_told() -> None:
    text = (DOCS / "keda.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^\| `([A-Z_]+)` \|", text, re.MULTILINE))
    table = importlib.import_module("services.scaler.grpc.status_codes")
    assert told <= {code.name for code in set(table.CODES.values())}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_that_are_told_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    told = re.findall(
        r"`((?:lagscale|services|migrations|devstack|tests|k8s|docker|examples|docs|requirements)/[^`\s]*)`", text
    )
    # A path with a placeholder or a star stands for several.
    missing = [path for path in told if not any(ROOT.glob(re.sub(r"NNNN\w*|<\w+>", "*", path.rstrip("/"))))]
    assert missing == []


def test_every_state_of_clusters_and_targets_is_told() -> None:
    text = (DOCS / "operations.md").read_text(encoding="utf-8")
    section = text.partition("## States of clusters and targets")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == {code.value for code in StateCode}


def test_every_rule_and_every_reason_of_an_explanation_is_told() -> None:
    text = (DOCS / "explain.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    active, stuck, *later = (rule.value for rule in ValueRule)
    assert told == [active, stuck, TIME_LAG, *later, LAST_KNOWN, ACTIVATION, *(why.value for why in DiffReason)]
