"""`lagscale audit`: a table of changes, or the JSON lines of the API."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from services.cli.client import ApiClient
from services.cli.settings import CliSettings
from tests.support.command_line import run_main

UPDATE: dict[str, Any] = {
    "id": "7c0f5b0e-0000-4000-8000-000000000001", "at": "2030-01-01T00:00:00.123Z", "tenant": "shop",
    "actor": "key 3f9a1c5e7b20 ([b]ci)", "action": "monitor.update", "object": "monitor/orders", "origin": "10.1.2.3",
    "before": {"policy": {"lagThreshold": "500", "targetLag": "100"}, "version": 1},
    "after": {"policy": {"lagThreshold": "900", "targetLag": "100"}, "version": 2},
}  # fmt: skip
DELETE = UPDATE | {"action": "monitor.delete", "origin": None, "after": None, "tenant": None}


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "260")


def run(
    monkeypatch: pytest.MonkeyPatch, answer: httpx.Response | Exception, *arguments: str
) -> tuple[int, list[httpx.URL]]:
    asked: list[httpx.URL] = []

    def answering(request: httpx.Request) -> httpx.Response:
        asked.append(request.url)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def client(settings: CliSettings, **_: object) -> ApiClient:
        return ApiClient(settings, httpx.MockTransport(answering))

    monkeypatch.setattr("services.cli.client.ApiClient", client)
    return run_main(monkeypatch, "audit", *arguments), asked


def test_it_shows_what_changed_by_its_path(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    page = httpx.Response(200, json={"items": [UPDATE, DELETE], "next": None})
    code, asked = run(monkeypatch, page, "shop", "--action", "monitor.*", "--since", "2030-01-01T00:00:00+01:00")
    assert code == 0
    assert asked[0].path == "/v1/tenants/shop/audit"
    assert dict(asked[0].params) == {"action": "monitor.*", "since": "2030-01-01T00:00:00+01:00", "limit": "50"}
    shown = capsys.readouterr().out
    for text in ("[b]ci", "10.1.2.3", "monitor.update", "monitor/orders", 'policy.lagThreshold: "500" -> "900"'):
        assert text in shown
    assert "targetLag" not in shown
    assert "version" not in shown
    assert "More events exist" not in shown


def test_without_a_tenant_it_is_the_platforms(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = httpx.Response(200, json={"items": [UPDATE], "next": "more"})
    code, asked = run(monkeypatch, page)
    assert (code, asked[0].path) == (0, "/v1/audit")
    shown = capsys.readouterr().out
    assert "shop" in shown
    assert "More events exist" in shown


def test_json_is_the_exports_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines = f"{json.dumps(UPDATE)}\n{json.dumps(DELETE)}\n"
    code, asked = run(monkeypatch, httpx.Response(200, text=lines), "shop", "--json", "--object", "monitor/orders")
    assert (code, asked[0].path) == (0, "/v1/tenants/shop/audit/export")
    assert dict(asked[0].params) == {"object": "monitor/orders"}
    assert capsys.readouterr().out == lines


@pytest.mark.parametrize("arguments", [("shop",), ("shop", "--json")])
@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        (httpx.Response(403, json={"type": "urn:lagscale:problem:forbidden", "detail": "No."}), 4),
        (httpx.Response(429, json={"type": "urn:lagscale:problem:rate-limit-exceeded", "detail": "Slower."}), 6),
        (httpx.Response(503, json={"type": "urn:lagscale:problem:token-issuer-unavailable", "detail": "Away."}), 8),
        (httpx.ReadError("broke off"), 8),
    ],
)
def test_a_problem_is_an_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: httpx.Response | Exception,
    wanted: int,
    arguments: tuple[str, ...],
) -> None:
    assert run(monkeypatch, answer, *arguments)[0] == wanted
    assert capsys.readouterr().err.startswith("lagscale: ")


def test_a_path_is_no_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, httpx.Response(200), "shop/orders") == (2, [])
