"""One running system for the scenarios that do not disturb each other; Spark alone takes half a minute to start."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from devstack.broker import Broker
from devstack.database import Database
from devstack.stack import Stack
from tests.e2e.system import System


@pytest.fixture(scope="package")
def system(database: Database, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Scraper, scaler and API as separate processes, with the shared broker and a database of their own.

    They stop with this shelf, so that they do not slow down the tests of others.
    """
    name = f"e2e_{uuid.uuid4().hex[:8]}"
    stack = Stack(database.create_database(name), tmp_path_factory.mktemp("stack"))
    try:
        stack.start()
        running = System(stack, broker.address)
        yield running
        running.close()
    finally:
        stack.stop()
        database.drop_database(name)
