"""Fixtures of the real parts: one broker and one database for a process, a fresh migrated database for each test.

Starting a server takes seconds, so both are shared; what a test keeps in them has a name of its own. A server that
cannot be started fails the tests that need it. `make test` runs two processes: a file's tests stay together in one, and
all that start a whole stack stay in one too.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from xdist.scheduler import LoadScopeScheduling

from devstack.broker import Broker
from devstack.database import Database
from tests.support.process_state import ProcessState

ROOT = Path(__file__).parents[1]
#: From the cheapest to the dearest: what is cheap fails first.
SHELVES = ("conventions", "unit", "contract", "integration", "fuzz", "spark", "e2e")
#: Where several processes share the tests, what takes long and cannot be parted comes first.
_IN_PARTS = ("e2e", "spark", "conventions", "unit", "fuzz", "integration", "contract")
_ONE_AT_A_TIME = frozenset({"e2e", "spark"})
_SECONDS: Counter[str] = Counter()


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """A file's tests stay in one process, because they share what their module sets up."""

    def _split_scope(self, nodeid: str) -> str:
        return "stack" if _shelf(nodeid) in _ONE_AT_A_TIME else nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    """Part the tests over processes."""
    return ByFile(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shelf by shelf; within a shelf the random order stays."""
    order = _IN_PARTS if hasattr(config, "workerinput") else SHELVES
    items.sort(key=lambda item: order.index(_shelf(item.nodeid)))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count the time of set-up, test and tear-down to its shelf."""
    _SECONDS[_shelf(report.nodeid)] += report.duration


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the minutes of each shelf and, last, the seed that repeats the order."""
    terminalreporter.section("minutes per shelf")
    for shelf in SHELVES:
        if shelf in _SECONDS:
            terminalreporter.write_line(f"{_SECONDS[shelf] / 60:6.1f}  {shelf}")
    seed = config.getoption("randomly_seed", None)
    terminalreporter.section("random order")
    terminalreporter.write_line(f"seed {seed}; the same order again: make test SEED={seed}")


def _shelf(nodeid: str) -> str:
    return nodeid.split("/")[1]


@pytest.fixture(autouse=True, scope="module")
def module_state() -> Iterator[None]:
    """What a module's fixtures change of the process ends with the module."""
    state = ProcessState.capture()
    yield
    state.restore()


@pytest.fixture(autouse=True)
def process_state(module_state: None) -> Iterator[None]:
    """What a test changes of the process ends with the test; a variable that it leaves behind fails it."""
    state = ProcessState.capture()
    yield
    left = state.changed_environment()
    state.restore()
    assert left == [], "set variables by monkeypatch, which removes them again"


@pytest.fixture(scope="session")
def database() -> Iterator[Database]:
    """A real TimescaleDB, or PostgreSQL where that is all there is."""
    with Database() as server:
        yield server


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """A real Kafka broker of one node."""
    with Broker() as server:
        yield server


@pytest.fixture
def bootstrap(broker: Broker) -> str:
    """The broker's address, `host:port`."""
    return broker.address


@pytest.fixture
def empty_url(database: Database) -> Iterator[str]:
    """A fresh database without any schema; its owner's URL."""
    name = f"t_{uuid.uuid4().hex}"
    yield database.create_database(name)
    database.drop_database(name)


@pytest.fixture
def migrated_url(empty_url: str) -> str:
    """A fresh database at head."""
    migrate(empty_url)
    return empty_url


@pytest.fixture(scope="module")
def shared_url(database: Database) -> Iterator[str]:
    """A migrated database that the tests of one module share; they keep to tenants of their own."""
    name = f"m_{uuid.uuid4().hex}"
    url = database.create_database(name)
    migrate(url)
    yield url
    database.drop_database(name)


def migrate(url: str) -> None:
    """Bring a database to head without the command line."""
    config = Config(toml_file=str(ROOT / "pyproject.toml"))
    config.set_main_option("script_location", str(ROOT / "migrations"))
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    command.upgrade(config, "head")
