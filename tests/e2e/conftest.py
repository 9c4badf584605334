"""One running system for the scenarios that break nothing; Spark alone takes half a minute to start."""

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
    """Scraper, scaler and API as processes of their own, over the shared broker and a database of their own.

    They end with this shelf: other tests of the process would run beside them.
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
