"""Freezes: which of them apply to a monitor.

A frozen monitor gets the last-known answer as of the freeze, without the time limit of `holdSeconds`; without such an
answer it gets an error, never 0. Alone because the store's records and all services share it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

#: A forgotten freeze becomes an outage, so none lasts longer.
MAX_FREEZE_MS: Final = 30 * 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Freeze:
    """A freeze of a whole tenant, of the monitors of one cluster, or of one monitor.

    Attributes:
        cluster: its name; None unless the freeze is of a cluster.
        monitor_id: None unless it is of a monitor.
        since_ms, until_ms: by the database's clock; the end is exclusive.
    """

    freeze_id: str
    tenant_id: int
    cluster: str | None
    monitor_id: int | None
    since_ms: int
    until_ms: int
    reason: str


class Freezes:
    """Freezes of many tenants by tenant, cluster and monitor."""

    def __init__(self, every: Iterable[Freeze]) -> None:
        self._of: dict[tuple[int, str | None, int | None], list[Freeze]] = {}
        for one in every:
            self._of.setdefault((one.tenant_id, one.cluster, one.monitor_id), []).append(one)

    def __bool__(self) -> bool:
        return bool(self._of)

    def of(self, tenant_id: int, cluster: str, monitor_id: int | None) -> tuple[Freeze, ...]:
        """The freezes of a monitor, ended ones too; None is an inline monitor that is not registered yet."""
        if not self._of:
            return ()
        whole, of_cluster = (tenant_id, None, None), (tenant_id, cluster, None)
        names = [whole, of_cluster] if monitor_id is None else [whole, of_cluster, (tenant_id, None, monitor_id)]
        return tuple(one for name in names for one in self._of.get(name, ()))


def select_active(freezes: Iterable[Freeze], now_ms: int | None) -> tuple[Freeze, ...]:
    """The freezes that have not ended, the oldest first; without a known clock all, which errs on the safe side."""
    present = [one for one in freezes if now_ms is None or now_ms < one.until_ms]
    return tuple(sorted(present, key=lambda one: (one.since_ms, one.freeze_id)))
