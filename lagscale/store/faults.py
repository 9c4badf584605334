"""Driver errors as errors of the family. Every adapter of this room wraps its statements in `translate_errors()`."""

from __future__ import annotations

from types import TracebackType

import psycopg
import psycopg_pool
from psycopg import errors as pg

from lagscale.errors import Conflict, LagscaleError, StoreTimeout, StoreUnavailable

#: The first matching row applies; an error without one is a defect and passes unchanged.
_TRANSLATIONS: tuple[tuple[tuple[type[Exception], ...], type[LagscaleError], str | None], ...] = (
    ((psycopg_pool.PoolTimeout, psycopg_pool.TooManyRequests), StoreTimeout, None),
    (
        (pg.QueryCanceled, pg.LockNotAvailable, pg.ConnectionTimeout, pg.IdleInTransactionSessionTimeout),
        StoreTimeout,
        None,
    ),
    ((pg.UniqueViolation, pg.ExclusionViolation), Conflict, None),
    (
        (pg.UndefinedTable, pg.UndefinedColumn, pg.UndefinedFunction, pg.UndefinedObject, pg.InvalidSchemaName),
        StoreUnavailable,
        "Database schema version mismatch; run `lagscale migrate`.",
    ),
    (
        (pg.InsufficientPrivilege, pg.InvalidPassword, pg.InvalidAuthorizationSpecification),
        StoreUnavailable,
        "The database rejected the login or role of this service; check LAGSCALE_DATABASE_URL and the roles.",
    ),
    ((psycopg.OperationalError, psycopg.InterfaceError, psycopg_pool.PoolClosed), StoreUnavailable, None),
    ((OSError,), StoreUnavailable, None),
)


def translate_error(error: BaseException) -> LagscaleError | None:
    """The family's error for a driver's, without its text, which may name addresses; None for anything else."""
    for classes, family, text in _TRANSLATIONS:
        if isinstance(error, classes):
            return family(text)
    return None


class ErrorTranslation:
    """Translates driver errors, in a `with` or an `async with`."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        translation = None if error is None else translate_error(error)
        if translation is not None:
            raise translation from error

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)


def translate_errors() -> ErrorTranslation:
    """A context in which driver errors become the family's; the driver's error is the cause."""
    return ErrorTranslation()
