"""Logs as data: structlog for every service, the standard library's loggers routed through it.

Called once by each service's `main`; metrics use prometheus-client's default registry directly.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping
from typing import Any

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

REDACTED = "[redacted]"
_SECRET_NAME = re.compile(r"pass(word|wd|phrase)|secret|authorization|token|credential|(^|[_\-.])keys?$", re.IGNORECASE)
# Messages of drivers and frameworks can contain a secret anywhere.
_SECRET_TEXTS = (
    (re.compile(r"(\w+://)[^/\s@]+@"), rf"\1{REDACTED}@"),
    (re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]+", re.IGNORECASE), rf"\1 {REDACTED}"),
    (re.compile(r"\blsk_[A-Za-z0-9]+_[\w-]+"), REDACTED),
    # A JSON Web Token: header and payload.
    (re.compile(r"\beyJ[\w-]+\.[\w-]+(\.[\w-]*)?"), REDACTED),
    (re.compile(r"\b(password|secret)=\S+", re.IGNORECASE), rf"\1={REDACTED}"),
)
#: Their request lines duplicate what the services log and count.
_QUIET_LOGGERS = ("uvicorn.access", "httpx", "httpcore", "py4j", "alembic.runtime.plugins")


def configure_logging(service: str, level: str, json: bool) -> None:
    """Send every log line to standard error, as JSON objects or for a console.

    Args:
        service: bound to every line as `service`.
        level: minimum level, for example `info`.
        json: one JSON object per line, else colored lines for a console.
    """

    def add_service(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        event.setdefault("service", service)
        return event

    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        add_service,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = _StderrHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=_build_renderers(json)),
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in _QUIET_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)


class _StderrHandler(logging.Handler):
    """Writes to the current standard error, which may have been replaced since the start."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            print(self.format(record), file=sys.stderr, flush=True)
        except Exception:
            self.handleError(record)


def _build_renderers(json: bool) -> list[Processor]:
    first: list[Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if json:
        # The traceback becomes text before it is redacted.
        return [*first, structlog.processors.format_exc_info, redact, structlog.processors.JSONRenderer(default=str)]
    return [*first, structlog.processors.format_exc_info, redact, structlog.dev.ConsoleRenderer()]


def redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Redact fields with secret names, and what looks like a secret inside texts."""
    return {name: _redact_value(name, value) for name, value in event.items()}


def _redact_value(name: str, value: Any) -> Any:
    if _SECRET_NAME.search(name) and value is not None and not isinstance(value, bool | int):
        return REDACTED
    if isinstance(value, Mapping):
        return {str(inner): _redact_value(str(inner), item) for inner, item in value.items()}
    if isinstance(value, list | tuple):
        return [_redact_value("", item) for item in value]
    if isinstance(value, BaseException):
        return redact_text(repr(value))
    return redact_text(value) if isinstance(value, str) else value


def redact_text(text: str) -> str:
    """The text with what looks like a secret redacted."""
    for pattern, replacement in _SECRET_TEXTS:
        text = pattern.sub(replacement, text)
    return text
