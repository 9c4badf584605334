"""The registry's tables as SQLAlchemy sees them are those of the migrations."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from lagscale.store import registry
from lagscale.store.registry import tables
from lagscale.store.samples.columns import COLUMNS

pytestmark = pytest.mark.integration

for _, name, _ in pkgutil.iter_modules(registry.__path__, f"{registry.__name__}."):
    if name.endswith("_tables"):
        importlib.import_module(name)  # They share the metadata.


@pytest.fixture
def engine(migrated_url: str) -> Iterator[sa.Engine]:
    """A migrated database."""
    made = sa.create_engine(migrated_url.replace("postgresql://", "postgresql+psycopg://"))
    yield made
    made.dispose()


def columns(found: sa.Table) -> dict[str, tuple[str, bool, bool]]:
    """Name -> (type, whether it may be NULL, whether it is of the primary key)."""
    dialect = sa.dialects.postgresql.dialect()  # type: ignore[attr-defined]
    return {
        column.name: (column.type.compile(dialect), bool(column.nullable), column.primary_key)
        for column in found.columns
    }


def test_declared_and_migrated_tables_are_equal(engine: sa.Engine) -> None:
    migrated = sa.MetaData()
    migrated.reflect(engine)
    for name, declared in tables.metadata.tables.items():
        assert columns(declared) == columns(migrated.tables[name]), name
    # A table that only the migrations know is either another room's, or was forgotten here.
    elsewhere = {"alembic_version", "lag_sample", "registry_change", "scraper_lease"}
    assert set(migrated.tables) - elsewhere == set(tables.metadata.tables)


def test_the_declared_view_is_a_part_of_the_migrated_one(engine: sa.Engine) -> None:
    migrated = sa.Table("tenant_lag_sample", sa.MetaData(), autoload_with=engine)
    found, declared = columns(migrated), columns(tables.tenant_lag_sample)
    assert {name: kind for name, (kind, _, _) in declared.items()} == {name: found[name][0] for name in declared}


def test_a_row_can_be_read_back_through_the_declared_view() -> None:
    assert set(COLUMNS) <= set(tables.tenant_lag_sample.columns.keys())
