"""The command: exit codes by table, answers shown, secrets not."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from cryptography.fernet import Fernet
from pydantic import SecretStr

from lagscale import errors
from lagscale.errors import LagscaleError
from services.cli.client import ApiClient
from services.cli.commands import installation
from services.cli.exits import EXIT_CODES, find_exit_code
from services.cli.settings import CliSettings
from tests.support.command_line import run_main

VERDICT = {
    "monitor": "orders", "verdict": "sustained", "reason": "lasted", "sentence": "Partition 2 has been above 500.",
    "answerSentence": "KEDA gets value 1,500, active.", "total": 5000, "partitions": 3, "missing": 0, "members": None,
    "newestRoundAt": "2030-01-01T00:00:00Z", "judgedAt": "2030-01-01T00:00:04Z",
}  # fmt: skip


def family(kind: type[LagscaleError] = LagscaleError) -> list[type[LagscaleError]]:
    return [kind, *(deeper for child in kind.__subclasses__() for deeper in family(child))]


def test_every_error_of_the_family_has_its_exit_code() -> None:
    ours = [kind for kind in family() if kind.__module__ == "lagscale.errors"]
    assert [kind.__name__ for kind in ours if kind not in EXIT_CODES] == []
    assert 0 not in EXIT_CODES.values()


def test_a_commands_own_error_takes_its_ancestors_code() -> None:
    assert find_exit_code(installation.MigrationsPending()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["migrate"],
        ["status"],
        ["verdict"],
        ["explain"],
        ["state"],
        ["keys"],
        ["keys", "generate"],
        ["apply"],
        ["diff"],
        ["get"],
        ["delete"],
        ["export"],
        ["audit"],
        ["secrets"],
        ["secrets", "rotate"],
    ],
)
def test_every_command_explains_itself(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_main(monkeypatch, *arguments, "--help") == 0
    assert "Usage: lagscale" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["nonsense"], ["verdict"], ["migrate", "--wait", "soon"]])
def test_wrong_usage_exits_2(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_main(monkeypatch, *arguments) == 2


def test_generated_keys_work(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_main(monkeypatch, "keys", "generate") == 0
    lines = dict(line.split("=", 1) for line in capsys.readouterr().out.splitlines())
    Fernet(lines["LAGSCALE_SECRET_KEYS"])
    assert len(lines["LAGSCALE_API_ADMIN_KEY"]) >= 40


def answered(monkeypatch: pytest.MonkeyPatch, status: int, body: Any) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == "Bearer canary-key"
        return httpx.Response(status, json=body)

    def client(settings: CliSettings, **_: object) -> ApiClient:
        return ApiClient(settings.model_copy(update={"api_key": SecretStr("canary-key")}), httpx.MockTransport(answer))

    monkeypatch.setattr("services.cli.client.ApiClient", client)


def test_a_verdict_is_shown_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answered(monkeypatch, 200, VERDICT)
    assert run_main(monkeypatch, "verdict", "shop/orders") == 0
    shown = capsys.readouterr().out
    for text in ("sustained", "Partition 2 has been above 500.", "KEDA gets value 1,500, active.", "5000", "unknown"):
        assert text in shown


def test_a_verdict_as_json_is_the_answer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answered(monkeypatch, 200, VERDICT)
    assert run_main(monkeypatch, "verdict", "shop/orders", "--json") == 0
    assert json.loads(capsys.readouterr().out) == VERDICT


def test_an_unknown_verdict_exits_7_and_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answered(monkeypatch, 200, VERDICT | {"verdict": "unknown", "sentence": "Not every topic has a sample yet."})
    assert run_main(monkeypatch, "verdict", "shop/orders") == 7
    assert "lagscale: Not every topic has a sample yet." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("not-found", 3), ("forbidden", 4), ("store-timeout", 8), ("internal-error", 1),
    ],
)  # fmt: skip
def test_a_problem_of_the_api_becomes_an_exit_code(
    name: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answered(monkeypatch, 400, {"type": f"urn:lagscale:problem:{name}", "detail": "the way out"})
    assert run_main(monkeypatch, "verdict", "shop/orders") == code
    assert capsys.readouterr().err == "lagscale: the way out\n"


def test_what_is_no_api_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answered(monkeypatch, 502, "<html>")
    assert run_main(monkeypatch, "verdict", "shop/orders") == 1
    assert "502" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["orders", "/orders", "shop/", "a/b/c"])
def test_a_monitor_is_named_with_its_tenant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_main(monkeypatch, "verdict", name) == 2


def test_migrating_without_a_database_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("LAGSCALE_DATABASE_URL", raising=False)
    assert run_main(monkeypatch, "migrate") == find_exit_code(errors.SettingsInvalid())
    assert "LAGSCALE_DATABASE_URL" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["status", "verdict shop/orders", "migrate", "keys generate", "import -f none.yaml"])
def test_a_former_name_of_a_setting_stops_every_command(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LAGSCALE_ADMIN_KEY", "canary-7281")
    assert run_main(monkeypatch, *words.split()) == 2
    told = "lagscale: LAGSCALE_ADMIN_KEY: was renamed to LAGSCALE_API_ADMIN_KEY; set that instead\n"
    assert capsys.readouterr() == ("", told)


@pytest.mark.parametrize(
    ("key", "text"), [(None, "it is empty"), ("lsk_canary", "does not accept the value of LAGSCALE_API_KEY")]
)
def test_a_missing_key_is_told_from_a_rejected_one(key: str | None, text: str) -> None:
    problem = {"type": "urn:lagscale:problem:not-authenticated", "detail": "Send it as `Authorization: Bearer`."}
    transport = httpx.MockTransport(lambda _: httpx.Response(401, json=problem))
    assert find_exit_code(errors.NotAuthenticated()) == 4
    client = ApiClient(CliSettings(api_key=None if key is None else SecretStr(key)), transport)
    with pytest.raises(errors.NotAuthenticated) as caught:
        client.get("/v1/tenants")
    assert text in caught.value.message
    assert "Bearer" not in caught.value.message.replace("bearer", "")
    assert "canary" not in caught.value.message
