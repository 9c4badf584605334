"""Runs cluster probes for a service: one process per probe, bounded in number and in time."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog
from pydantic import TypeAdapter, ValidationError

from lagscale.domain.state_codes import StateCode
from lagscale.errors import LagscaleError, PreflightRunning, QuotaExceeded
from lagscale.kafka.probe.result import ProbeRequest, ProbeResult

log = structlog.get_logger(__name__)

#: Start and end of the Python process, in addition to the probe itself.
_STARTUP_SECONDS = 4.0
_MAX_PER_TENANT = 2


class ProbeRunner:
    """Runs probes: each for at most `seconds` (0 disables them), in at most `max_concurrent` processes.

    A tenant has at most two of them, a cluster one.
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
        """Probe a cluster. A probe that crashes or times out gives a result too.

        `wait_for_slot`: wait for a free slot for as long as a probe may take, instead of failing at once.

        Raises:
            PreflightRunning: a probe of this cluster is running.
            QuotaExceeded: the limit of concurrent probes is reached, of the tenant or of the system.
        """
        async with self._acquire_slot(tenant_id, cluster_id, self.seconds if wait_for_slot else 0.0):
            return await _run(request)

    def _find_conflict(self, tenant_id: int, cluster_id: int) -> LagscaleError | None:
        if cluster_id in self._clusters:
            return PreflightRunning()
        if self._tenants[tenant_id] >= _MAX_PER_TENANT:
            return QuotaExceeded(
                f"Too many concurrent probes for this tenant (at most {_MAX_PER_TENANT}); retry in a few seconds."
            )
        if len(self._clusters) >= self._max_concurrent:
            return QuotaExceeded("Too many concurrent cluster probes; retry in a few seconds.")
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
            # Before waiting for the condition, so that a cancelled request releases its slot too.
            self._clusters.discard(cluster_id)
            self._tenants[tenant_id] -= 1
            self._tenants += Counter()
            async with self._changed:
                self._changed.notify_all()


async def _run(request: ProbeRequest) -> ProbeResult:
    # Isolated, with an empty environment: a process that talks to brokers of tenants holds no secret of the service.
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-I", "-m", "lagscale.kafka.probe"),
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
        log.warning("probe_timed_out", timeout_seconds=request.seconds)
        return ProbeResult(problem=StateCode.TIMEOUT, text="The cluster probe timed out; retry.")
    except ValidationError:
        # The library aborts its process when a broker answers out of order.
        log.warning("probe_crashed", exit_code=process.returncode)
        return ProbeResult(problem=StateCode.FAILED, text="The cluster probe crashed; retry.")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
