"""Alembic environment: one transaction per migration, under an advisory lock, so that two runs at once are safe."""

from __future__ import annotations

import os
from typing import Any

import sqlalchemy as sa
from alembic import context

# Any constant will do; it only has to be the same in every run.
_LOCK = 7_236_451_190
_LOCK_TIMEOUT = "5s"
_STATEMENT_TIMEOUT = "5min"


def _url() -> str:
    """The address given by the caller, else by the environment; psycopg 3 is the driver."""
    given = context.config.get_main_option("sqlalchemy.url") or os.environ["LAGSCALE_DATABASE_URL"]
    scheme, rest = given.split("://", 1)
    return f"postgresql+psycopg://{rest}" if scheme in {"postgres", "postgresql"} else given


def _told(*, step: Any, **_facts: Any) -> None:
    """Tell the caller of each step; only the run that holds the lock makes any."""
    tell = context.config.attributes.get("on_step")
    if tell is not None:
        tell(step.up_revision_id, step.up_revision.doc)


def _run_online() -> None:
    engine = sa.create_engine(_url(), poolclass=sa.pool.NullPool)
    with engine.connect() as connection:
        # Session-level, because every migration has a transaction of its own.
        connection.execute(sa.text("select pg_advisory_lock(:key)"), {"key": _LOCK})
        connection.commit()
        try:
            connection.execute(sa.text(f"set lock_timeout = '{_LOCK_TIMEOUT}'"))
            connection.execute(sa.text(f"set statement_timeout = '{_STATEMENT_TIMEOUT}'"))
            connection.commit()
            context.configure(connection=connection, transaction_per_migration=True, on_version_apply=_told)
            with context.begin_transaction():
                context.run_migrations()
        finally:
            connection.rollback()
            connection.execute(sa.text("select pg_advisory_unlock(:key)"), {"key": _LOCK})
            connection.commit()
    engine.dispose()


if context.is_offline_mode():
    context.configure(url="postgresql+psycopg://", literal_binds=True, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()
else:
    _run_online()
