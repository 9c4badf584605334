"""Former names of settings stop the stack, as they stop the services."""

from __future__ import annotations

import os

import pytest
from typer.testing import CliRunner

from devstack import __main__ as devstack
from devstack.broker import Broker
from devstack.database import Database
from devstack.demo import __main__ as demo
from lagscale.errors import SettingsInvalid

RENAMED = "LAGSCALE_KAFKA_BOOTSTRAP: was renamed to LAGSCALE_DEVSTACK_KAFKA_BOOTSTRAP; set that instead"


@pytest.fixture(autouse=True)
def former_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("LAGSCALE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LAGSCALE_KAFKA_BOOTSTRAP", "127.0.0.1:9092")


@pytest.mark.parametrize("kind", [Broker, Database])
def test_a_former_name_is_refused_and_the_new_one_named(kind: type[Broker | Database]) -> None:
    with pytest.raises(SettingsInvalid, match=RENAMED):
        kind()


def test_up_exits_2_in_one_line() -> None:
    assert CliRunner().invoke(devstack.app, ["up"]).output == f"not started: {RENAMED}\n"
    assert CliRunner().invoke(devstack.app, ["up"]).exit_code == 2


def test_the_demo_exits_2_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main() == 2
    assert capsys.readouterr().out == f"The demo was not started: {RENAMED}\n"
