"""`lagscale-api` refuses to start on faulty settings, says which, and explains itself."""

from __future__ import annotations

import os
import sys

import pytest

from services.api.__main__ import main
from services.api.settings import ApiSettings

URL = {"LAGSCALE_DATABASE_URL": "postgresql://x"}


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without any of our variables, and no arguments."""
    for name in list(os.environ):
        if name.upper().startswith(("LAGSCALE_", "KAFKA_")):
            monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "argv", ["lagscale-api"])


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({}, "LAGSCALE_DATABASE_URL: must be set"),
        (URL | {"LAGSCALE_API_ADMIN_KEY": "canary"}, "LAGSCALE_API_ADMIN_KEY: must have at least 16 characters"),
        (URL | {"LAGSCALE_API_LISTN": ":1"}, "did you mean LAGSCALE_API_LISTEN?"),
        (URL | {"LAGSCALE_API_LISTEN": "canary"}, "LAGSCALE_API_LISTEN: must have the form"),
        (URL | {"KAFKA_TOPIC": "orders"}, "KAFKA_BROKERS: must be set"),
        (URL | {"LAGSCALE_SECRET_KEYS": "canary"}, "LAGSCALE_SECRET_KEYS: key 1 is not a Fernet key"),
    ],
)
def test_faults_of_the_settings_stop_the_start(
    variables: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    assert main() == 2
    said = capsys.readouterr().err
    assert told in said
    assert "canary" not in said


def test_a_faulty_policy_of_the_environments_monitor_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = {"KAFKA_BROKERS": "k:1", "KAFKA_TOPIC": "t", "KAFKA_GROUP_ID": "g", "LAG_THRESHOLD": "0"}
    for name, text in (URL | one).items():
        monkeypatch.setenv(name, text)
    assert main() == 2
    assert "lagThreshold: must be at least 1" in capsys.readouterr().err


def test_help_lists_every_setting(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["lagscale-api", "--help"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert [name for name in ApiSettings.model_fields if f"LAGSCALE_{name.upper()}" not in shown] == []
