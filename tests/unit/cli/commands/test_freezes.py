"""`lagscale freeze`, `unfreeze` and `freezes`: requests, output, and arguments that are rejected without a request."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from lagscale.errors import InvalidInput
from services.cli.client import ApiClient
from services.cli.commands import freezes as commands
from services.cli.commands.freezes import build_freeze_path, parse_duration
from services.cli.settings import CliSettings
from tests.support.command_line import run_main

MADE = {
    "kind": "monitor", "name": "orders", "reason": "a [move]", "since": "2030-01-31T10:00:00Z",
    "until": "2030-01-31T12:00:00Z", "frozenBy": "key 3f9a (ci)",
}  # fmt: skip


class Api:
    """Remembers what came, and answers as the test says."""

    def __init__(self) -> None:
        self.came: list[tuple[str, str, Any]] = []
        self.answers: list[httpx.Response] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else None
        self.came.append((request.method, request.url.raw_path.decode(), body))
        return self.answers.pop(0)


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    answering = Api()
    settings = CliSettings(api_url="http://api", api_key=SecretStr("k"))
    monkeypatch.setattr(commands, "open_api", lambda: ApiClient(settings, httpx.MockTransport(answering)))
    return answering


@pytest.mark.parametrize(
    ("text", "span"), [("2h", 7200), ("90m", 5400), ("1d12h", 129_600), ("45s", 45), (" 1H30m ", 5400)]
)
def test_spans_are_read_as_people_write_them(text: str, span: int) -> None:
    assert parse_duration(text) == span


@pytest.mark.parametrize("text", ["", "2", "h", "2 h", "2h!", "-1h", "1.5h", "2w", "99999999h"])
def test_other_spans_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="--for: must be a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("what", "cluster", "found"),
    [
        ("shop/orders", None, "/v1/tenants/shop/monitors/orders/freeze"),
        ("shop", "main", "/v1/tenants/shop/clusters/main/freeze"),
        ("shop", None, "/v1/tenants/shop/freeze"),
        ("a b/c?d", None, "/v1/tenants/a%20b/monitors/c%3Fd/freeze"),
    ],
)
def test_each_thing_has_its_path(what: str, cluster: str | None, found: str) -> None:
    assert build_freeze_path(what, cluster) == found


@pytest.mark.parametrize(("what", "cluster"), [("shop/orders", "main"), ("", None), ("shop/", None), ("/x", None)])
def test_what_is_no_thing_is_refused(what: str, cluster: str | None) -> None:
    with pytest.raises(InvalidInput):
        build_freeze_path(what, cluster)


def test_a_freeze_is_sent_and_told(
    api: Api, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answers = [httpx.Response(201, json=MADE)]
    assert run_main(monkeypatch, "freeze", "shop/orders", "--for", "2h", "--reason", "a [move]") == 0
    body = {"forSeconds": 7200, "reason": "a [move]"}
    assert api.came == [("PUT", "/v1/tenants/shop/monitors/orders/freeze", body)]
    assert capsys.readouterr().out == "monitor orders is frozen until 2030-01-31T12:00:00Z: a [move]\n"


@pytest.mark.parametrize(
    ("arguments", "sent", "said"),
    [
        (["shop/orders"], "monitors/orders/freeze", "The freeze of monitor shop/orders has ended."),
        (["shop", "--cluster", "main"], "clusters/main/freeze", "The freeze of cluster main has ended."),
        (["shop"], "freeze", "The freeze of tenant shop has ended."),
    ],
)
def test_an_end_is_sent_and_told(
    *,
    api: Api,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    sent: str,
    said: str,
) -> None:
    api.answers = [httpx.Response(204)]
    assert run_main(monkeypatch, "unfreeze", *arguments) == 0
    assert api.came == [("DELETE", f"/v1/tenants/shop/{sent}", None)]
    assert capsys.readouterr().out.strip() == said


def test_a_list_is_read_to_its_end(
    api: Api, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    whole = {**MADE, "kind": "tenant", "name": None}
    api.answers = [
        httpx.Response(200, json={"items": [MADE], "next": "n"}),
        httpx.Response(200, json={"items": [whole], "next": None}),
    ]
    assert run_main(monkeypatch, "freezes", "shop") == 0
    assert [url for _, url, _ in api.came] == ["/v1/tenants/shop/freezes", "/v1/tenants/shop/freezes?cursor=n"]
    shown = capsys.readouterr().out
    assert "orders" in shown
    assert "tenant" in shown


@pytest.mark.parametrize(
    ("status", "problem", "code"), [(404, "not-found", 3), (403, "forbidden", 4), (503, "store-unavailable", 8)]
)
def test_a_refusal_has_its_exit_code(
    *,
    api: Api,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    status: int,
    problem: str,
    code: int,
) -> None:
    api.answers = [httpx.Response(status, json={"type": f"urn:lagscale:problem:{problem}", "detail": "No."})]
    assert run_main(monkeypatch, "freeze", "shop", "--for", "2h", "--reason", "x") == code
    assert capsys.readouterr().err == "lagscale: No.\n"
    assert run_main(monkeypatch, "freeze", "shop", "--for", "soon", "--reason", "x") == 2
