"""Logs: one JSON object a line, and nothing secret in it."""

from __future__ import annotations

import json
import logging

import pytest
import structlog

from lagscale.telemetry import REDACTED, configure_logging, redact

CANARY = "canary-4711"


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> pytest.CaptureFixture[str]:
    configure_logging("tester", "info", json=True)
    return capsys


def read(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_structlog_and_the_standard_library_share_one_form(lines: pytest.CaptureFixture[str]) -> None:
    structlog.get_logger("one").info("round_written", tenant="shop", rows=3)
    logging.getLogger("two").warning("it is %s", "late", extra={"group": "g"})
    first, second = read(lines)
    assert (first["event"], first["tenant"], first["rows"], first["service"]) == ("round_written", "shop", 3, "tester")
    assert (second["event"], second["level"], second["group"], second["service"]) == (
        "it is late",
        "warning",
        "g",
        "tester",
    )


def test_what_is_below_the_level_is_not_shown(lines: pytest.CaptureFixture[str]) -> None:
    structlog.get_logger("one").debug("detail")
    logging.getLogger("two").debug("detail")
    assert read(lines) == []


@pytest.mark.parametrize(
    "facts",
    [
        {"password": CANARY},
        {"api_key": CANARY},
        {"LAGSCALE_SECRET_KEYS": CANARY},
        {"headers": {"Authorization": f"Bearer {CANARY}"}},
        {"items": [{"clientSecret": CANARY}]},
        {"url": f"postgresql://lagscale:{CANARY}@db.example/lagscale"},
        {"text": f"sent lsk_0a1b2c_{CANARY} to it"},
        {"text": f"authorization was Bearer {CANARY}"},
        {"text": f"host=db password={CANARY} dbname=x"},
        {"error": ValueError(f"kafka://u:{CANARY}@broker")},
    ],
)
def test_secrets_are_blanked(facts: dict[str, object], lines: pytest.CaptureFixture[str]) -> None:
    structlog.get_logger("one").info("it_happened", **facts)
    written = lines.readouterr().err
    assert CANARY not in written
    assert REDACTED in written


def test_traces_are_blanked_too(lines: pytest.CaptureFixture[str]) -> None:
    try:
        raise RuntimeError(f"no route to postgresql://u:{CANARY}@db")
    except RuntimeError:
        structlog.get_logger("one").exception("it_broke")
        logging.getLogger("two").exception("it broke")
    written = lines.readouterr().err
    assert CANARY not in written
    assert written.count("RuntimeError") >= 2


def test_what_is_not_secret_stays() -> None:
    event = {"event": "x", "monkey": "a", "keyspace": "b", "has_secrets": True, "n": 1, "none": None}
    assert redact(None, "info", dict(event)) == event
