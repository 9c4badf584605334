"""Validates a monitor: what would be refused, and what its cluster says of topics, group and lag. Stores nothing."""

from __future__ import annotations

from lagscale.domain.verdict.contract import Ask, Reason
from lagscale.domain.wording.verdicts import sentence
from lagscale.errors import Conflict, Fault, InvalidInput, QuotaExceeded, SecretsUnreadable
from lagscale.kafka.probe.result import Findings
from lagscale.store.registry.monitor_spec import MonitorSpec
from lagscale.store.registry.session import RegistryDatabase, Row, Scope
from lagscale.store.registry.watched import cluster_to_ask, measured
from services.api.monitors.drafts import drafted
from services.api.operations import Operations
from services.api.preflight.preflight import Preflights
from services.api.schemas import MonitorIn, WarningOut
from services.api.validation.schemas import (
    FaultOut,
    GroupChecked,
    TopicChecked,
    ValidationOut,
    VerdictChecked,
)
from services.api.validation.warnings import not_measured, topics_checked, topics_meant, warnings_of, window_of
from services.api.verdicts.evidence import Verdicts

_NO_CLUSTER = Fault("cluster", "is no cluster of this tenant; register it first")
#: Verdicts that say no more than that there are no samples.
_NOTHING = {Reason.NO_DATA, Reason.NOTHING_TO_MEASURE}


class Validation:
    """Validates monitors, as they are registered and before."""

    def __init__(
        self, database: RegistryDatabase, operations: Operations, preflights: Preflights, verdicts: Verdicts
    ) -> None:
        """Take the parts; verdicts are judged in the scaler's role, of targets found behind the caller's wall."""
        self._database = database
        self._operations = operations
        self._preflights = preflights
        self._verdicts = verdicts

    async def of(self, scope: Scope, tenant: str, given: MonitorIn) -> ValidationOut:
        """What registering this monitor would say.

        Raises:
            NotFound: there is no such tenant for this caller.
            StoreUnavailable: the store did not answer.
        """
        faults: list[Fault] = []
        spec: MonitorSpec | None = None
        async with self._database.tenant(scope, tenant) as work:
            try:
                spec = self._operations.built(drafted(given.name or "unnamed", given), work)
            except InvalidInput as wrong:
                faults += wrong.faults
            cluster = await cluster_to_ask(work, given.cluster)
        if cluster is None:
            faults.append(_NO_CLUSTER)
        if spec is None or cluster is None:
            return ValidationOut(valid=False, errors=[FaultOut(field=one.field, text=one.text) for one in faults])
        if self._preflights.off:
            return ValidationOut(valid=True, window=window_of(spec.policy))
        return await self._checked(scope, tenant, spec, cluster)

    async def _checked(self, scope: Scope, tenant: str, spec: MonitorSpec, cluster: Row) -> ValidationOut:
        found, busy = await self._look(tenant, spec, cluster)
        meant = topics_meant(spec, found)
        topics = None if meant is None else topics_checked(spec, found, meant)
        warnings = [WarningOut(field="cluster", text=busy)] if busy else warnings_of(spec, found, topics)
        group = next((one for one in found.groups if one.name == spec.consumer_group), None)
        return ValidationOut(
            valid=True,
            warnings=warnings,
            topics=topics or [],
            group=None if group is None else GroupChecked(name=group.name, kind=group.kind, members=group.members),
            window=window_of(spec.policy),
            now=await self._now(scope, tenant, spec, cluster, topics),
        )

    async def _look(self, tenant: str, spec: MonitorSpec, cluster: Row) -> tuple[Findings, str]:
        """What is found, and why the cluster was not even asked."""
        try:
            found = await self._preflights.look(
                tenant,
                cluster,
                groups={spec.consumer_group: spec.topics},
                each_address=False,
                listing=spec.pattern is not None,
                patient=True,
            )
        except (Conflict, QuotaExceeded, SecretsUnreadable) as busy:
            return Findings(problem="busy"), f"Topics and group were not checked. {busy.message}"
        return found, ""

    async def _now(
        self, scope: Scope, tenant: str, spec: MonitorSpec, cluster: Row, topics: list[TopicChecked] | None
    ) -> VerdictChecked:
        """The verdict by stored samples, where all that the monitor means is measured already."""
        names = [topic.name for topic in topics or ()]
        async with self._database.tenant(scope, tenant) as work:
            targets = await measured(
                work,
                int(cluster["id"]),
                spec.consumer_group,
                topics=names,
                isolation=spec.policy.isolation_level.value,
                limitation=spec.limitation,
            )
        fresh = not_measured(spec.policy, topics)
        if not names or set(targets.values()) != set(names):
            return fresh
        ask = Ask(int(cluster["tenant_id"]), tuple(sorted(targets)), spec.policy)
        judgement = (await self._verdicts.judge([ask], evidence=True))[0]
        if judgement.reason in _NOTHING:
            return fresh
        return VerdictChecked(
            verdict=judgement.verdict.value,
            sentence=sentence(judgement, spec.policy, targets),
            value=judgement.value,
            measured=True,
            lag=fresh.lag,
        )
