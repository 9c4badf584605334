"""Connections set the formats that the driver reads, whatever the defaults of the database are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql

from lagscale.store.connection import ScraperDatabase, connect, open_pool
from lagscale.store.registry.session import RegistryDatabase

pytestmark = pytest.mark.integration
_HOSTILE = ("intervalstyle = iso_8601", "datestyle = sql, dmy", "extra_float_digits = -15")
_ASK = "select interval '25:00:00', '2026-02-03 04:05:06+00'::timestamptz, '0.30000000000000004'::float8::text"
_RIGHT = (timedelta(hours=25), datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC), "0.30000000000000004")


@pytest.fixture
def hostile_url(migrated_url: str) -> str:
    with psycopg.connect(migrated_url, autocommit=True) as owner:
        for setting in _HOSTILE:
            statement = sql.SQL("alter database {} set {}").format(sql.Identifier(owner.info.dbname), sql.SQL(setting))
            owner.execute(statement)
    with psycopg.connect(migrated_url) as plain, pytest.raises(NotImplementedError):
        plain.execute(_ASK).fetchone()
    return migrated_url


async def test_the_pool_and_single_connections_read_what_was_stored(hostile_url: str) -> None:
    pool = open_pool(hostile_url, "lagscale_scaler", 1, application="test")
    async with pool, pool.connection() as pooled:
        assert await (await pooled.execute(_ASK)).fetchone() == _RIGHT
    async with await connect(hostile_url, "lagscale_scaler", application="test") as single:
        assert await (await single.execute(_ASK)).fetchone() == _RIGHT


def test_the_scraper_reads_what_was_stored(hostile_url: str) -> None:
    database = ScraperDatabase(hostile_url)
    with database.transaction() as connection:
        assert connection.execute(_ASK).fetchone() == _RIGHT
    database.close()


async def test_the_registry_reads_what_was_stored(hostile_url: str) -> None:
    registry = RegistryDatabase(hostile_url, size=1)
    async with registry.platform("test") as session:
        assert tuple((await session.execute(sa.text(_ASK))).one()) == _RIGHT
    await registry.close()
