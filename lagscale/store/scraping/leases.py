"""The scraper's lease in database time: acquired, renewed, locked, released.

Every function raises `StoreUnavailable` if the store does not answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from lagscale.errors import LeaseLost
from lagscale.store.connection import ScraperDatabase
from lagscale.store.queries import load

NAME = "scraper"


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write samples: an epoch that only the current leader's transactions carry."""

    holder: str
    epoch: int


def acquire(database: ScraperDatabase, holder: str, seconds: float) -> Lease | None:
    """Acquire a free or expired lease, or renew one's own; None while another holds it.

    `holder` is a name that no other process has; the lease expires after `seconds` by the database's clock.
    """
    with database.transaction() as connection:
        # A stopped holder may keep the row locked until the server ends its transaction.
        connection.execute("set local lock_timeout = '1s'")
        parameters = {"name": NAME, "holder": holder, "seconds": seconds}
        row = connection.execute(load("scrape_lease_acquire"), parameters).fetchone()
    return None if row is None else Lease(holder, int(row[0]))


def release(database: ScraperDatabase, holder: str) -> None:
    """Release the lease, so that a standby takes over at once; without the store it expires."""
    with database.transaction() as connection:
        connection.execute(load("scrape_lease_release"), {"name": NAME, "holder": holder})


def lock_lease(connection: Connection[Any], lease: Lease) -> None:
    """Nobody can take the lease until this transaction ends.

    Raises:
        LeaseLost: it is not held any more.
    """
    parameters = {"name": NAME, "holder": lease.holder, "epoch": lease.epoch}
    if connection.execute(load("scrape_lease_check"), parameters, prepare=True).fetchone() is None:
        raise LeaseLost
