"""The scraper's lease in database time: acquired, renewed, locked, released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psycopg import Connection

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

    Args:
        database: the scraper's.
        holder: a name that no other process has.
        seconds: until it expires, by the database's clock.

    Raises:
        StoreUnavailable: the store did not answer.
    """
    with database.transaction() as connection:
        # A stopped holder may keep the row locked until the server ends its transaction.
        connection.execute("set local lock_timeout = '1s'")
        row = connection.execute(
            load("scrape_lease_acquire"), {"name": NAME, "holder": holder, "seconds": seconds}
        ).fetchone()
    return None if row is None else Lease(holder, int(row[0]))


def release(database: ScraperDatabase, holder: str) -> None:
    """Release the lease, so that a standby takes over at once.

    Raises:
        StoreUnavailable: the store did not answer; the lease then expires.
    """
    with database.transaction() as connection:
        connection.execute(load("scrape_lease_release"), {"name": NAME, "holder": holder})


def lock_lease(connection: Connection[Any], lease: Lease) -> bool:
    """Whether the lease is still held; if so, nobody can take it until this transaction ends."""
    row = connection.execute(
        load("scrape_lease_check"), {"name": NAME, "holder": lease.holder, "epoch": lease.epoch}, prepare=True
    ).fetchone()
    return row is not None
