"""Dockerfiles and Compose: every file, script, extra, port and variable that they name exists."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conventions.services import DEPLOYED, SCRIPTS, read_project

ROOT = Path(__file__).parents[2]
DOCKERFILES = sorted((ROOT / "docker").glob("*.Dockerfile"))
OURS = ("migrate", *DEPLOYED)


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return read_project()


def instructions(path: Path) -> list[tuple[str, str]]:
    """(instruction, arguments), continuation lines joined, comments left out."""
    text = re.sub(r"^\s*#[^\n]*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n", " ", text).splitlines()
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1].strip()) for line in lines if line.strip()]


def test_there_is_one_dockerfile_for_each_script(project: dict[str, Any]) -> None:
    scripts = {script.removeprefix("lagscale").removeprefix("-") or "cli" for script in project["scripts"]}
    assert {path.stem for path in DOCKERFILES} == scripts


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.stem)
def test_dockerfiles_start_their_script_with_their_extra(path: Path, project: dict[str, Any]) -> None:
    steps = instructions(path)
    entry = json.loads(next(arguments for name, arguments in steps if name == "ENTRYPOINT"))
    assert entry[-1] in project["scripts"]
    assert project["scripts"][entry[-1]].startswith(f"services.{path.stem}.")
    assert path.stem in project["optional-dependencies"]
    assert f"requirements/{path.stem}.lock" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.stem)
def test_dockerfiles_copy_what_exists_and_is_not_ignored(path: Path) -> None:
    kept = {
        line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")
    }
    for name, arguments in instructions(path):
        if name == "COPY" and not arguments.startswith("--from"):
            for source in arguments.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert source.split("/")[0] in kept, source


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.stem)
def test_images_do_not_run_as_root(path: Path) -> None:
    steps = instructions(path)
    (user,) = (arguments for name, arguments in steps if name == "USER")
    assert user.split(":")[0] != "0"
    assert int(user.split(":")[0]) > 1000
    assert [name for name, _ in steps].index("USER") < [name for name, _ in steps].index("ENTRYPOINT")


def test_images_share_one_python() -> None:
    froms = {arguments.split()[0] for path in DOCKERFILES for name, arguments in instructions(path) if name == "FROM"}
    assert len(froms) == 1
    assert froms.pop().startswith("python:3.11-")


def test_only_the_scraper_carries_java() -> None:
    assert [path.stem for path in DOCKERFILES if "jre" in path.read_text(encoding="utf-8")] == ["scraper"]


def test_compose_builds_from_dockerfiles_that_exist(compose: dict[str, Any], project: dict[str, Any]) -> None:
    for name in OURS:
        service = compose["services"][name]
        assert (ROOT / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
        stem = Path(service["build"]["dockerfile"]).stem
        assert service["image"] == f"lagscale/{stem}:{project['version']}"


def test_compose_gives_variables_that_the_services_know(
    compose: dict[str, Any], settings_of: Callable[[str], set[str]]
) -> None:
    for name in OURS:
        given = set(compose["services"][name]["environment"])
        assert given - settings_of("cli" if name == "migrate" else name) == set(), name


def test_compose_interpolates_known_names_and_explains_those_it_requires(
    settings_of: Callable[[str], set[str]],
) -> None:
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    operations = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    known = set.union(*(settings_of(service) for service in SCRIPTS.values())) | {"POSTGRES_PASSWORD"}
    for name, rest in re.findall(r"\$\{(\w+)([^}]*)\}", text):
        assert name in known
        if rest.startswith(":?"):
            assert f"{name}=" in operations, f"{name} is required and not explained"


def test_compose_holds_no_secret(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        for variable, value in service["environment"].items():
            if re.search(r"PASSWORD|SECRET|KEY|DATABASE_URL", variable):
                assert "${" in str(value), (name, variable)


def test_compose_ports_and_health_are_those_that_services_listen_on(compose: dict[str, Any]) -> None:
    for name in OURS:
        service = compose["services"][name]
        listens = {
            str(value).rpartition(":")[2] for key, value in service["environment"].items() if key.endswith("_LISTEN")
        }
        for published in service.get("ports", ()):
            address, _, inside = published.rpartition(":")
            assert address.startswith("127.0.0.1:"), f"{name} is open to the network"
            assert inside in listens, name
        if name != "migrate":
            asked = re.search(r"127\.0\.0\.1:(\d+)/readyz", service["healthcheck"]["test"][-1])
            assert asked is not None
            assert asked[1] in listens, name


def test_compose_waits_for_what_exists(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for name, service in services.items():
        for wanted, how in service.get("depends_on", {}).items():
            assert wanted in services, name
            if how["condition"] == "service_healthy":
                assert "healthcheck" in services[wanted], name
        for mount in service.get("volumes", ()):
            assert mount.split(":")[0] in compose["volumes"], name
    for name in DEPLOYED:
        assert services[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"


def test_compose_services_can_write_their_cache(compose: dict[str, Any]) -> None:
    for name in OURS:
        service = compose["services"][name]
        places = [mount.split(":")[0] for mount in service.get("tmpfs", ())]
        places += [mount.split(":")[1] for mount in service.get("volumes", ())]
        assert service["read_only"] is True
        assert service["environment"]["LAGSCALE_CACHE_DIR"] in places, name


def test_python_that_an_image_runs_while_it_is_built_imports_what_exists() -> None:
    statements = [
        statement
        for path in (ROOT / "docker").rglob("*Dockerfile")
        for statement in re.findall(r"\bfrom (lagscale[\w.]* import \w+)", path.read_text(encoding="utf-8"))
    ]
    assert statements
    for statement in statements:
        module, _, name = statement.partition(" import ")
        assert hasattr(importlib.import_module(module), name), statement
