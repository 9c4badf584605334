"""Brings the schema to its newest revision by Alembic; the command `lagscale migrate` and the tests call it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
import structlog
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

from lagscale.errors import StoreUnavailable

log = structlog.get_logger(__name__)

_CONNECT_SECONDS = 5


@dataclass(frozen=True, slots=True)
class MigrationResult:
    """The schema's revisions before and after; `applied` are (revision, first line of its docstring) in order."""

    before: str | None
    after: str | None
    applied: tuple[tuple[str, str], ...]

    @property
    def changed(self) -> bool:
        """Whether any migration ran."""
        return bool(self.applied)


def migrations_folder() -> Path:
    """The scripts of the wheel, or of the repository where there is none."""
    packaged = Path(__file__).parent / "migrations"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "migrations"


def migrate(url: str, *, wait_seconds: float = 0.0) -> MigrationResult:
    """Run the pending migrations. Safe when two run at once: the second finds none.

    Args:
        url: as in `LAGSCALE_DATABASE_URL`; its user owns the database or is a superuser.
        wait_seconds: how long to retry the first connection.

    Raises:
        StoreUnavailable: the database was not available within that time.
    """
    before = _wait_for_revision(url, wait_seconds)
    applied: list[tuple[str, str]] = []
    config = _config(url)
    # The environment calls this for each step of this run, not for those of a concurrent one.
    config.attributes["on_step"] = lambda revision, title: applied.append((revision, title))
    command.upgrade(config, "head")
    return MigrationResult(before, _revision(url), tuple(applied))


def find_pending(url: str, *, wait_seconds: float = 0.0) -> tuple[tuple[str, str], ...]:
    """The pending migrations, as (revision, first line of its docstring); changes nothing.

    Raises:
        StoreUnavailable: the database was not available within that time.
    """
    revision = _wait_for_revision(url, wait_seconds)
    scripts = ScriptDirectory.from_config(_config(url))
    steps = scripts.iterate_revisions("head", revision or "base")
    return tuple(reversed([(step.revision, step.doc) for step in steps if step.revision != revision]))


def _config(url: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    # Alembic interpolates its options, so a percent sign of a password must be doubled.
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    return config


def _revision(url: str) -> str | None:
    scheme, rest = url.split("://", 1)
    address = f"postgresql+psycopg://{rest}" if scheme in {"postgres", "postgresql"} else url
    engine = sa.create_engine(address, poolclass=sa.pool.NullPool, connect_args={"connect_timeout": _CONNECT_SECONDS})
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def _wait_for_revision(url: str, seconds: float) -> str | None:
    retrying = Retrying(
        stop=stop_after_delay(seconds),
        wait=wait_exponential(multiplier=0.2, max=3),
        retry=retry_if_exception_type(sa.exc.OperationalError),
        before_sleep=lambda state: log.info("waiting_for_store", attempt=state.attempt_number),
        reraise=True,
    )
    try:
        return retrying(_revision, url)
    except sa.exc.OperationalError as wrong:
        raise StoreUnavailable("The database is unavailable; check LAGSCALE_DATABASE_URL.") from wrong
