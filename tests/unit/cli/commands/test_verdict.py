"""`lagscale state`: status of the group and of partitions, and the exit code if it is unknown."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from services.cli.client import ApiClient
from services.cli.settings import CliSettings
from tests.support.command_line import run_main

PARTITION: dict[str, Any] = {
    "topic": "[b]orders", "partition": 0, "status": "ok", "rule": "no_lag", "sentence": "No lag.",
    "lag": 0, "startLag": 5, "commitDelta": 12_345, "unchangedSince": None, "possiblyUnchangedEarlier": False,
    "stuck": False, "hot": False,
}  # fmt: skip
STALL = PARTITION | {
    "partition": 1, "status": "stall", "sentence": "It stands.", "lag": 1_200, "startLag": 400, "commitDelta": 0,
    "unchangedSince": "2030-01-01T00:00:00Z", "possiblyUnchangedEarlier": True, "stuck": True, "hot": True,
}  # fmt: skip
STATE: dict[str, Any] = {
    "monitor": "orders", "consumerGroup": "readers", "status": "stall", "sentence": "Of 2 partitions: 1 stall, 1 ok.",
    "windowSeconds": 120.0, "members": 2, "unmeasuredTopics": [], "partialReason": None, "partitions": [STALL, PARTITION],
}  # fmt: skip


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "220")


def run(monkeypatch: pytest.MonkeyPatch, body: dict[str, Any], *arguments: str) -> int:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/v1/tenants/shop/monitors/orders/state"
        return httpx.Response(200, json=body)

    def client(settings: CliSettings, **_: object) -> ApiClient:
        return ApiClient(settings, httpx.MockTransport(answer))

    monkeypatch.setattr("services.cli.client.ApiClient", client)
    return run_main(monkeypatch, "state", *arguments)


def test_what_is_not_ok_is_shown_with_its_numbers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, STATE, "shop/orders") == 0
    shown = capsys.readouterr().out
    for text in (
        "orders: stall",
        "readers, members 2, window 120 s",
        "1 stall, 1 ok",
        "stall stuck hot",
        "1,200",
        "400",
    ):
        assert text in shown
    assert "2030-01-01T00:00:00Z or earlier" in shown
    assert "[b]orders" in shown
    assert "No lag." not in shown


def test_all_shows_the_rest(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, STATE, "shop/orders", "--all") == 0
    shown = capsys.readouterr().out
    assert "No lag." in shown
    assert "+12,345" in shown


def test_json_is_the_answer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, STATE, "shop/orders", "--json") == 0
    assert json.loads(capsys.readouterr().out) == STATE


def test_an_unknown_state_exits_7_and_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    body = STATE | {"status": "unknown", "members": None, "unmeasuredTopics": ["refunds"], "partitions": []}
    assert run(monkeypatch, body, "shop/orders") == 7
    out, err = capsys.readouterr()
    assert "members unknown" in out
    assert "no recent samples: refunds" in out
    assert err == "lagscale: Of 2 partitions: 1 stall, 1 ok.\n"


def test_a_part_of_the_topics_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, STATE | {"status": "unknown", "partialReason": "Too many topics."}, "shop/orders") == 7
    assert capsys.readouterr().err == "lagscale: Too many topics.\n"


@pytest.mark.parametrize("name", ["orders", "/orders", "shop/", "a/b/c"])
def test_a_monitor_is_named_with_its_tenant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, STATE, name) == 2
