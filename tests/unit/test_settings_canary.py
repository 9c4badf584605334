"""A service tells its settings and their faults, and never the value of one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from tests.conventions.pages import settings, settings_classes

CANARY = "C4nary-5e77-in-the-settings"
ROOT = Path(__file__).parents[2]
SERVICES = ("api", "scaler", "scraper")
#: Settings whose type says that they are secret, by their classes.
SECRETS = sorted(
    {
        f"LAGSCALE_{name}".upper()
        for _, kind in settings_classes()
        for name, field in kind.model_fields.items()
        if SecretStr.__name__ in str(field.annotation)
    }
)


def ran(service: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("LAGSCALE_", "KAFKA_"))}
    return subprocess.run(
        [sys.executable, "-m", f"services.{service}", *arguments],
        env=kept | {"PYTHONPATH": str(ROOT)} | variables, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("service", SERVICES)
def test_help_shows_no_value(service: str) -> None:
    ended = ran(service, "--help", **{setting.name: CANARY for setting in settings()})
    assert (ended.returncode, "usage" in ended.stdout) == (0, True)
    assert CANARY not in ended.stdout + ended.stderr


@pytest.mark.parametrize("service", SERVICES)
def test_faults_of_settings_show_no_secret(service: str) -> None:
    assert {"LAGSCALE_DATABASE_URL", "LAGSCALE_SECRET_KEYS", "LAGSCALE_API_ADMIN_KEY", "LAGSCALE_API_KEY"} <= set(
        SECRETS
    )
    faulty = dict.fromkeys((setting.name for setting in settings()), "none") | dict.fromkeys(
        SECRETS, f" {CANARY}\n:@/{CANARY}"
    )
    ended = ran(service, **faulty)
    assert ended.returncode == 2
    assert "LAGSCALE_TICK_SECONDS" in ended.stderr
    assert CANARY not in ended.stdout + ended.stderr


@pytest.mark.parametrize("service", SERVICES)
def test_faults_of_secrets_show_nothing_of_them(service: str) -> None:
    given = {"LAGSCALE_DATABASE_URL": "postgresql://x", "LAGSCALE_SECRET_KEYS": f"{CANARY},{CANARY}"}
    ended = ran(service, **given, LAGSCALE_TICK_SECNDS=CANARY)
    assert ended.returncode == 2
    assert "LAGSCALE_TICK_SECNDS" in ended.stderr
    assert CANARY not in ended.stdout + ended.stderr
