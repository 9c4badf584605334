"""What a test changes of the process is put back, so that the next one does not depend on it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import pytest
import structlog
from structlog.testing import capture_logs

from lagscale.telemetry import configure_logging
from services.api import problems
from services.scaler.metrics import ANSWERS
from tests.support.process_state import ProcessState


@pytest.fixture
def state() -> Iterator[ProcessState]:
    captured = ProcessState.capture()
    yield captured
    captured.restore()


def test_a_logger_that_was_used_under_another_configuration_is_captured_again(
    state: ProcessState, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("tester", "info", json=True)
    problems.log.info("first_use")
    assert "first_use" in capsys.readouterr().err
    state.restore()
    with capture_logs() as lines:
        problems.log.info("second_use")
    assert [line["event"] for line in lines] == ["second_use"]


def test_handlers_and_levels_are_put_back(state: ProcessState) -> None:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    configure_logging("tester", "debug", json=False)
    assert root.handlers != handlers
    state.restore()
    assert (root.handlers, root.level, structlog.is_configured()) == (handlers, level, False)


def test_a_variable_is_named_and_put_back(state: ProcessState) -> None:
    os.environ["LAGSCALE_LEFT_BEHIND"] = "1"
    assert state.changed_environment() == ["LAGSCALE_LEFT_BEHIND"]
    state.restore()
    assert state.changed_environment() == []


def test_metrics_are_put_back(state: ProcessState) -> None:
    before = {labels: child._value.get() for labels, child in ANSWERS._metrics.items()}
    ANSWERS.labels("a_kind_of_this_test").inc()
    for labels in before:
        ANSWERS.labels(*labels).inc(3)
    state.restore()
    assert {labels: child._value.get() for labels, child in ANSWERS._metrics.items()} == before
