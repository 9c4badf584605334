"""The session of docs/api.md: its blocks run in bash as they stand, and the API says what stands below them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli.conftest import ADMIN, ROOT, Api, environment

pytestmark = pytest.mark.integration

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
#: A block of commands, and the answer below it if there is one.
BLOCK = re.compile(r"```sh\n(.*?)```(?:\n\n```json\n(.*?)```)?", re.DOTALL)
ADDRESS = "http://127.0.0.1:8080"
ANY = "..."


def unlike(told: Any, said: Any, way: str = "answer") -> list[str]:
    """Where an answer is not what the page tells; fields that the page leaves out do not count."""
    if told == ANY:
        return [] if said not in {None, ""} else [f"{way} is empty"]
    if isinstance(told, dict) and isinstance(said, dict):
        lacking = [f"{way}.{name} is not in the answer" for name in told.keys() - said.keys()]
        return lacking + [
            one for name in told.keys() & said.keys() for one in unlike(told[name], said[name], f"{way}.{name}")
        ]
    if isinstance(told, list) and isinstance(said, list) and len(told) == len(said):
        return [
            one for place, pair in enumerate(zip(told, said, strict=True)) for one in unlike(*pair, f"{way}[{place}]")
        ]
    return [] if told == said else [f"{way} is {said!r}, the page tells {told!r}"]


@pytest.fixture
def printed(other_api: Api, tmp_path: Path) -> list[str]:
    """What each block printed, run in one shell against an API on a fresh database."""
    lines = ["set -euo pipefail"]
    for number, (commands, _) in enumerate(BLOCK.findall(PAGE)):
        assert ADDRESS not in commands.replace(f"{ADDRESS}/", "").replace(f"{ADDRESS}$", "")
        lines.append(f"{{\n{commands.replace(ADDRESS, other_api.url)}}} > {tmp_path}/{number}.out")
    script = tmp_path / "session.sh"
    script.write_text("\n".join(lines), encoding="utf-8")
    done = subprocess.run(
        ["bash", str(script)],
        env=environment(LAGSCALE_API_ADMIN_KEY=ADMIN, LAGSCALE_API_KEY=ADMIN),
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    outputs = [file.read_text() for number in range(len(lines) - 1) if (file := tmp_path / f"{number}.out").exists()]
    assert done.returncode == 0, f"{done.stderr}\n{outputs[-1:]}"
    return outputs


def test_the_session_runs_and_the_api_says_what_the_page_tells(printed: list[str]) -> None:
    blocks = BLOCK.findall(PAGE)
    assert len(printed) == len(blocks)
    wrong = [
        f"{commands.strip().splitlines()[0]}: {one}"
        for (commands, told), said in zip(blocks, printed, strict=True)
        if told
        for one in unlike(json.loads(told), json.loads(said))
    ]
    assert wrong == []


def test_the_session_shows_the_whole_way() -> None:
    commands = "\n".join(commands for commands, _ in BLOCK.findall(PAGE))
    for step in (
        "PUT /v1/tenants/shop ", "/clusters/main", "/monitors/orders", "/bindings", "/keys", "/verdict", "/explain",
        "dryRun=true", "If-Match", "DELETE /v1/tenants/shop/monitors", "DELETE /v1/tenants/shop\n",
    ):  # fmt: skip
        assert step in commands
    answers = [told for _, told in BLOCK.findall(PAGE) if told]
    assert len(answers) >= 12
    assert all(json.loads(told) for told in answers)


@pytest.mark.parametrize(
    ("told", "said", "places"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, 0), ({"a": 1}, {"b": 1}, 1), ({"a": "..."}, {"a": None}, 1), ([1], [1, 2], 1),
        ({"a": [{"b": "..."}]}, {"a": [{"b": 5}]}, 0), ({"a": {"b": True}}, {"a": {"b": False}}, 1),
    ],
)  # fmt: skip
def test_an_answer_that_differs_is_seen(told: Any, said: Any, places: int) -> None:
    assert len(unlike(told, said)) == places
