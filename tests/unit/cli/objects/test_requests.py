"""Bulk requests for the monitors of a tenant: their number, and the result of each monitor if one is rejected."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from tests.support.command_line import Command
from tests.unit.cli.commands.test_apply import monitor, written
from tests.unit.cli.fake_api import Answer, FakeApi, problem

MANY = 60


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, fake: FakeApi) -> None:
    monkeypatch.setenv("LAGSCALE_API_KEY", "canary-key")
    fake.bulk = 25
    fake.page = 500


def many(tmp_path: Path, **policy: int) -> str:
    return written(tmp_path, *(monitor(f"m-{number:03}", **policy) for number in range(MANY)))


def posts(fake: FakeApi) -> list[str]:
    return [one for one in fake.asked if not one.startswith("GET")]


def test_many_monitors_take_few_requests(command: Command, fake: FakeApi, tmp_path: Path) -> None:
    assert command("apply", "-f", many(tmp_path)).out.splitlines()[-1] == "60 created, 0 unchanged."
    bulk = "POST /v1/tenants/shop/monitors/bulk"
    assert posts(fake) == [f"{bulk}?dryRun"] * 3 + [bulk] * 3
    assert command("diff", "-f", many(tmp_path)).code == 0


def test_what_differs_is_told_as_the_api_tells_it(command: Command, fake: FakeApi, tmp_path: Path) -> None:
    command("apply", "-f", many(tmp_path))
    told = command("diff", "-f", many(tmp_path, lagThreshold=7))
    assert told.out.splitlines()[:2] == ["~ monitor shop/m-000", '    told: unset -> "by bulk"']
    assert command("apply", "-f", many(tmp_path, lagThreshold=7)).out.splitlines()[-1] == "60 changed, 0 unchanged."


def test_what_the_api_takes_for_the_same_is_the_same(command: Command, fake: FakeApi, tmp_path: Path) -> None:
    file = many(tmp_path, lagThreshold=7)

    def unchanged(request: httpx.Request) -> Answer | None:
        if not request.url.path.endswith("/bulk"):
            return None
        names = [item["put"]["name"] for item in json.loads(request.content)["items"]]
        rows = [{"name": name, "outcome": "unchanged", "version": 1, "differences": {}} for name in names]
        return Answer(200, json={"items": rows})

    command("apply", "-f", many(tmp_path))
    fake.before = unchanged
    assert command("diff", "-f", file).out == "No changes: 60 objects up to date.\n"


def test_faults_of_items_are_those_of_the_objects_at_their_lines(
    command: Command, fake: FakeApi, tmp_path: Path
) -> None:
    def wrong(request: httpx.Request) -> Answer | None:
        items = json.loads(request.content)["items"] if request.url.path.endswith("/bulk") else []
        places = [place for place, item in enumerate(items) if item["put"]["name"] in {"m-003", "m-027"}]
        field_errors = [{"field": f"items.{place}.put.policy.lagThreshold", "text": "must be less"} for place in places]
        return problem(422, "invalid-input", "wrong", field_errors) if field_errors else None

    fake.before = wrong
    done = command("apply", "-f", many(tmp_path, lagThreshold=7))
    assert done.code == 2
    assert [line.rpartition("file.yaml:")[2] for line in done.err.splitlines()] == [
        "7: monitor shop/m-003: spec.policy.lagThreshold: must be less",
        "55: monitor shop/m-027: spec.policy.lagThreshold: must be less",
    ]
    assert not any("/monitors/" in path for path in fake.objects)


@pytest.mark.parametrize("refused", [problem(429, "quota-exceeded", "Full."), problem(409, "conflict", "Taken.")])
def test_a_refused_request_is_made_again_one_by_one(
    command: Command, fake: FakeApi, tmp_path: Path, refused: Answer
) -> None:
    looks = []

    def before(request: httpx.Request) -> Answer | None:
        bulk = request.url.path.endswith("/bulk") and "dryRun" not in request.url.params
        if request.method == "PUT":
            looks.append(request.url.params.get("validate"))
        return refused if bulk or request.url.path.endswith("/m-007") else None

    fake.before = before
    done = command("apply", "-f", many(tmp_path))
    assert (done.code, done.out.splitlines()[-1]) == (10, "59 created, 0 unchanged, 1 failed.")
    assert "monitor shop/m-007: " in done.err
    assert looks == ["false"] * MANY, "no more of them look at their cluster than in the one request"


def test_an_api_that_goes_away_ends_it_and_tells_what_was_done(command: Command, fake: FakeApi, tmp_path: Path) -> None:
    writes = iter([None, None])

    def before(request: httpx.Request) -> Answer | None:
        if request.method == "POST" and "dryRun" not in request.url.params:
            return next(writes, problem(503, "store-unavailable", "Retry."))
        return None

    fake.before = before
    done = command("apply", "-f", many(tmp_path))
    assert (done.code, done.out.splitlines()[-1]) == (10, "50 created, 0 unchanged, 10 failed.")
    assert len(done.err.splitlines()) == 10


def test_a_few_are_written_one_by_one(command: Command, fake: FakeApi, tmp_path: Path) -> None:
    command("apply", "-f", written(tmp_path, monitor("a"), monitor("b")))
    assert sorted(posts(fake)) == [
        f"PUT /v1/tenants/shop/monitors/{name}{dry}" for name in "ab" for dry in ("", "?dryRun")
    ]
