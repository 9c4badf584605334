"""Migrating: from nothing, again, at once, with rows, by a user who is no superuser."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from devstack.database import Database
from lagscale.errors import StoreUnavailable
from lagscale.store.migrate import find_pending, migrate, migrations_folder

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[3]
ROLES = "lagscale_owner, lagscale_reader, lagscale_scraper, lagscale_scaler, lagscale_api"


def scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    return ScriptDirectory.from_config(config)


HEAD = scripts().get_current_head()
REVISIONS = [script.revision for script in reversed(list(scripts().walk_revisions()))]


def upgrade(url: str, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    command.upgrade(config, revision)


def one(url: str, query: str, *values: object) -> Any:
    with psycopg.connect(url) as connection:
        found = connection.execute(query, values).fetchone()
    assert found is not None
    return found[0]


def lagscale(url: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {name: text for name, text in os.environ.items() if not name.startswith("LAGSCALE_")}
    return subprocess.Popen(
        [sys.executable, "-m", "services.cli", *arguments],
        env=environment | {"LAGSCALE_DATABASE_URL": url},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_from_nothing_to_head_and_again(empty_url: str) -> None:
    assert [revision for revision, _ in find_pending(empty_url)] == REVISIONS
    first = migrate(empty_url)
    assert (first.before, first.after) == (None, HEAD)
    assert [revision for revision, _ in first.applied] == REVISIONS
    assert find_pending(empty_url) == ()
    again = migrate(empty_url)
    assert (again.before, again.after, again.applied, again.changed) == (HEAD, HEAD, (), False)


def test_several_at_once_migrate_once(empty_url: str) -> None:
    running = [lagscale(empty_url, "migrate") for _ in range(3)]
    told = [process.communicate(timeout=60) for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], told
    for revision in REVISIONS:
        assert sum(f"applied {revision} " in out for out, _ in told) == 1
    assert one(empty_url, "select version_num from alembic_version") == HEAD


def test_two_databases_of_one_server_at_once(database: Database) -> None:
    names = [f"t_{uuid.uuid4().hex}" for _ in range(2)]
    urls = [database.create_database(name) for name in names]
    running = [lagscale(url, "migrate") for url in urls]
    told = [process.communicate(timeout=60) for process in running]
    assert [process.returncode for process in running] == [0, 0], told
    for name in names:
        database.drop_database(name)


def test_the_command_tells_what_is_still_to_run(empty_url: str) -> None:
    checking = lagscale(empty_url, "migrate", "--check")
    out, _ = checking.communicate(timeout=60)
    assert checking.returncode == 1
    assert [line.split()[1] for line in out.splitlines()] == REVISIONS
    assert one(empty_url, "select to_regclass('alembic_version') is null")
    migrate(empty_url)
    checking = lagscale(empty_url, "migrate", "--check")
    assert "The schema is up to date." in checking.communicate(timeout=60)[0]
    assert checking.returncode == 0


def test_a_database_that_does_not_answer_is_an_error_in_time() -> None:
    with pytest.raises(StoreUnavailable, match="LAGSCALE_DATABASE_URL"):
        migrate("postgresql://nobody@127.0.0.1:1/none", wait_seconds=0.2)


def test_rows_of_the_previous_schema_live_on(empty_url: str) -> None:
    upgrade(empty_url, "0002")
    with psycopg.connect(empty_url) as connection:
        connection.execute("insert into tenant (name) values ('shop')")
        connection.execute(
            "insert into cluster (tenant_id, name, bootstrap) select id, 'main', '{k:1}' from tenant where name = 'shop'"
        )
    migrate(empty_url)
    assert one(empty_url, "select name from cluster") == "main"
    assert one(empty_url, "select version from registry_change") >= 3


@pytest.fixture
def managed_url(database: Database) -> Iterator[str]:
    """A database as managed services give it: its owner is no superuser, and the roles were granted to it."""
    name, user = f"t_{uuid.uuid4().hex}", f"u_{uuid.uuid4().hex}"
    url = database.create_database(name)
    migrate(url)  # Makes the roles, which belong to the whole server.
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"create role {user} login password 'p%25' nosuperuser nocreatedb nocreaterole")
        connection.execute(f"grant {ROLES} to {user}")
    database.drop_database(name)
    url = database.create_database(name)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"alter database {name} owner to {user}")
        connection.execute(f"alter schema public owner to {user}")
    info = psycopg.conninfo.conninfo_to_dict(url)
    yield f"postgresql://{user}:p%2525@{info['host']}:{info['port']}/{name}"
    database.drop_database(name)
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(f"drop role {user}")


def test_an_owner_who_is_no_superuser_can_migrate_and_serve(managed_url: str) -> None:
    assert migrate(managed_url).after == HEAD
    for role in ("lagscale_api", "lagscale_scaler", "lagscale_scraper"):
        with psycopg.connect(managed_url) as connection:
            connection.execute(f"set role {role}")
            assert connection.execute("select count(*) from tenant").fetchone() == (0,)
