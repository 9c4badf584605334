"""Logs of these tests: tracebacks in plain text, as the services write them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def plain_tracebacks() -> Iterator[None]:
    """The default renderer shows the locals of each frame: seconds for each defect that a test provokes."""
    renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, structlog.processors.add_log_level, renderer]
    )
    yield
    structlog.reset_defaults()
