"""State of the test process that one test could leave to the next: logging, environment, metrics.

`tests/conftest.py` captures it before each module and each test, and restores it afterwards, so that tests pass in any
order.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import structlog
from prometheus_client import REGISTRY
from prometheus_client.metrics import MetricWrapperBase

#: Set by pytest itself for each phase of a test.
_OWN_VARIABLES = frozenset({"PYTEST_CURRENT_TEST"})
_PRODUCT = ("lagscale.", "services.", "devstack.")


@dataclass(frozen=True, slots=True)
class ProcessState:
    """A capture of the process's state.

    Attributes:
        structlog_config: structlog's configuration; None while it is not configured.
        handlers: handlers of the root logger.
        levels: logger name -> level, the root logger under the empty name.
        environment: all variables.
        directory: the working directory.
        metrics: metric name -> (labels -> value), of the product's counters and gauges.
    """

    structlog_config: Mapping[str, Any] | None
    handlers: tuple[logging.Handler, ...]
    levels: Mapping[str, int]
    environment: Mapping[str, str]
    directory: str
    metrics: Mapping[str, Mapping[tuple[str, ...], float | None]]

    @classmethod
    def capture(cls) -> ProcessState:
        """The state now."""
        return cls(
            structlog_config=dict(structlog.get_config()) if structlog.is_configured() else None,
            handlers=tuple(logging.getLogger().handlers),
            levels={name: logger.level for name, logger in _loggers()},
            environment=_environment(),
            directory=os.getcwd(),
            metrics={metric._name: _values(metric) for metric in _metrics()},
        )

    def changed_environment(self) -> list[str]:
        """Variables that were set, changed or removed since the capture, sorted."""
        now = _environment()
        return sorted(name for name in {*now, *self.environment} if now.get(name) != self.environment.get(name))

    def restore(self) -> None:
        """Put everything back as it was captured."""
        self._restore_logging()
        for name in self.changed_environment():
            if name in self.environment:
                os.environ[name] = self.environment[name]
            else:
                del os.environ[name]
        if os.getcwd() != self.directory:
            os.chdir(self.directory)
        for metric in _metrics():
            _restore_values(metric, self.metrics.get(metric._name, {}))

    def _restore_logging(self) -> None:
        if self.structlog_config is None:
            if structlog.is_configured():
                structlog.reset_defaults()
        else:
            structlog.configure(**self.structlog_config)
        # A logger that was used while `cache_logger_on_first_use` was on keeps that configuration for ever.
        for proxy in _lazy_loggers():
            vars(proxy).pop("bind", None)
        root = logging.getLogger()
        if tuple(root.handlers) != self.handlers:
            root.handlers[:] = self.handlers
        for name, logger in _loggers():
            logger.setLevel(self.levels.get(name, logging.NOTSET))


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _OWN_VARIABLES}


def _loggers() -> Iterator[tuple[str, logging.Logger]]:
    yield "", logging.getLogger()
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger):
            yield name, logger


def _lazy_loggers() -> Sequence[Any]:
    """Loggers at the top of the product's modules; looked up again when modules were imported since."""
    return _find_lazy_loggers(len(sys.modules))


@lru_cache(maxsize=1)
def _find_lazy_loggers(_modules: int) -> Sequence[Any]:
    return [
        value
        for name, module in list(sys.modules.items())
        if name.startswith(_PRODUCT)
        for value in list(vars(module).values())
        if type(value).__name__ == "BoundLoggerLazyProxy"
    ]


def _metrics() -> Iterator[MetricWrapperBase]:
    for collector in list(REGISTRY._collector_to_names):
        if isinstance(collector, MetricWrapperBase) and collector._name.startswith("lagscale_"):
            yield collector


def _values(metric: MetricWrapperBase) -> dict[tuple[str, ...], float | None]:
    """Labels -> value; None for a histogram, whose counts tests compare as differences."""
    if metric._labelnames:
        return {labels: _value(child) for labels, child in list(metric._metrics.items())}
    return {(): _value(metric)}


def _value(metric: MetricWrapperBase) -> float | None:
    held = getattr(metric, "_value", None)
    return None if held is None else held.get()


def _restore_values(metric: MetricWrapperBase, values: Mapping[tuple[str, ...], float | None]) -> None:
    children = dict(metric._metrics) if metric._labelnames else {(): metric}
    for labels, child in children.items():
        value = values.get(labels)
        held = getattr(child, "_value", None)
        if held is not None and held.get() != (value or 0.0):
            held.set(value or 0.0)
        # A child that a module keeps under its name stays usable: it is removed from what is shown, no more.
        if labels and labels not in values:
            metric.remove(*labels)
