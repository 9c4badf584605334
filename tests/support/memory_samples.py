"""An in-memory twin of the store of samples: the same ports, answered by the reference of the verdict.

For tests of the scaler and the API.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lagscale.domain.lag.rounds import SampleRow, TargetRound
from lagscale.domain.verdict.contract import Answer, Judgment, VerdictRequest
from lagscale.domain.verdict.evaluate import find_last_known, judge
from lagscale.errors import LeaseLost
from lagscale.store.queries import Limit
from lagscale.store.samples.write import AppendResult
from lagscale.store.scraping.leases import Lease


class MemorySamples:
    """Samples of all tenants in one process: what the scraper writes to, and a `VerdictSource`.

    Args:
        now_ms: the store's clock, milliseconds since 1970; the one clock that decides freshness.
        lease: whose batches are taken; None takes every batch.
    """

    def __init__(self, now_ms: Callable[[], int], lease: Lease | None = None) -> None:
        self._now_ms = now_ms
        self.lease = lease
        self._rows: dict[tuple[int, int], dict[int, SampleRow]] = {}

    def newest(self, target_ids: Sequence[int]) -> dict[int, SampleRow]:
        """The newest row of each target that has one."""
        return {
            target: rows[max(rows)] for (_, target), rows in self._rows.items() if target in set(target_ids) and rows
        }

    def append(self, rows: Sequence[tuple[int, int, SampleRow]], lease: Lease) -> AppendResult:
        """Store (tenant id, target id, row); a row that is there already is counted as a duplicate.

        Raises:
            LeaseLost: the lease is not the current one; nothing was stored.
        """
        if self.lease is not None and lease != self.lease:
            raise LeaseLost("another scraper leads; nothing was stored")
        stored = duplicates = refused = 0
        latest = self._now_ms() + Limit.FUTURE_TOLERANCE_MS
        for tenant, target, row in rows:
            stored_rows = self._rows.setdefault((tenant, target), {})
            if row.round.at_ms > latest:
                refused += 1
            elif row.round.at_ms in stored_rows:
                duplicates += 1
            else:
                stored_rows[row.round.at_ms] = row
                stored += 1
        return AppendResult(stored, duplicates, refused)

    async def judge(self, requests: Sequence[VerdictRequest]) -> list[Judgment]:
        """One judgment for each ask, in order, all at one reading of the clock."""
        now_ms = self._now_ms()
        return [
            judge(
                self._rounds(request),
                request.policy,
                now_ms=now_ms if request.judged_at_ms is None else request.judged_at_ms,
                upto_ms=request.upto_ms,
            )
            for request in requests
        ]

    async def find_last_known(self, request: VerdictRequest, judgment: Judgment) -> Answer | None:
        """The held answer for an unknown judgment; None when there is nothing to hold."""
        return find_last_known(self._rounds(request), request.policy, now_ms=judgment.now_ms, upto_ms=request.upto_ms)

    def _rounds(self, request: VerdictRequest) -> dict[int, list[TargetRound]]:
        return {
            target: [row.round for row in self._rows.get((request.tenant_id, target), {}).values()]
            for target in request.target_ids
        }
