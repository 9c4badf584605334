"""Looks at clusters for a service: one process for each look, a bounded number of them, each bounded in time."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog
from pydantic import TypeAdapter, ValidationError

from lagscale.errors import Conflict, LagscaleError, QuotaExceeded
from lagscale.kafka.probe.result import ProbeRequest, ProbeResult

log = structlog.get_logger(__name__)

#: Python's start and end of the process beside the look itself.
_STARTUP_SECONDS = 4.0
_MAX_PER_TENANT = 2


class ProbeRunner:
    """Runs looks.

    Args:
        seconds: each ends within so many; 0 looks at nothing.
        max_concurrent: processes at most. One tenant has two of them at most, one cluster one.
    """

    def __init__(self, seconds: float = 8.0, max_concurrent: int = 4) -> None:
        self.seconds = seconds
        self._max_concurrent = max_concurrent
        self._changed = asyncio.Condition()
        self._tenants: Counter[int] = Counter()
        self._clusters: set[int] = set()

    async def run(
        self, tenant_id: int, cluster_id: int, request: ProbeRequest, *, wait_for_slot: bool = False
    ) -> ProbeResult:
        """What is found; a look that breaks off or takes too long is a finding too.

        Args:
            tenant_id: whose cluster it is.
            cluster_id: the cluster; one look at it at a time.
            request: what is asked.
            wait_for_slot: wait for a turn for as long as a look may take, instead of being refused at once.

        Raises:
            Conflict: this cluster is being looked at.
            QuotaExceeded: the tenant has as many looks under way as it may, or everybody together.
        """
        async with self._acquire_slot(tenant_id, cluster_id, self.seconds if wait_for_slot else 0.0):
            return await _run(request)

    def _find_conflict(self, tenant_id: int, cluster_id: int) -> LagscaleError | None:
        if cluster_id in self._clusters:
            return Conflict("This cluster is being looked at; ask again when that has ended, in some seconds.")
        if self._tenants[tenant_id] >= _MAX_PER_TENANT:
            return QuotaExceeded(
                f"{_MAX_PER_TENANT} clusters of this tenant are being looked at, as many as may be at a time; ask again "
                "in some seconds."
            )
        if len(self._clusters) >= self._max_concurrent:
            return QuotaExceeded("As many clusters are being looked at as may be at a time; ask again in some seconds.")
        return None

    @asynccontextmanager
    async def _acquire_slot(self, tenant_id: int, cluster_id: int, seconds: float) -> AsyncIterator[None]:
        async with self._changed:
            try:
                async with asyncio.timeout(seconds):
                    await self._changed.wait_for(lambda: self._find_conflict(tenant_id, cluster_id) is None)
            except TimeoutError:
                refusal = self._find_conflict(tenant_id, cluster_id)
                if refusal is not None:
                    raise refusal from None
            self._clusters.add(cluster_id)
            self._tenants[tenant_id] += 1
        try:
            yield
        finally:
            # Without waiting for the condition, so that a cancelled request gives its turn back too.
            self._clusters.discard(cluster_id)
            self._tenants[tenant_id] -= 1
            self._tenants += Counter()
            async with self._changed:
                self._changed.notify_all()


async def _run(request: ProbeRequest) -> ProbeResult:
    # Isolated, and with an empty environment: what speaks to brokers that tenants choose holds no secret of the service.
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-I", "-m", "lagscale.kafka.probe.__main__"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
    )
    request_json = TypeAdapter(ProbeRequest).dump_json(request)
    try:
        output, _ = await asyncio.wait_for(process.communicate(request_json), request.seconds + _STARTUP_SECONDS)
        return TypeAdapter(ProbeResult).validate_json(output)
    except TimeoutError:
        log.warning("look_took_too_long", seconds=request.seconds)
        return ProbeResult(problem="timeout", text="The cluster was not looked at in time; ask again.")
    except ValidationError:
        # The library aborts its process when a broker answers out of turn.
        log.warning("look_broke_off", code=process.returncode)
        return ProbeResult(problem="failed", text="Looking at the cluster broke off; ask again.")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
