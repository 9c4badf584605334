"""Validates a monitor: what would be refused, and what its cluster says of topics, group and lag. Stores nothing."""

from __future__ import annotations

from lagscale.domain.verdict.contract import Reason, VerdictRequest
from lagscale.domain.wording.verdicts import describe_verdict
from lagscale.errors import Conflict, FieldError, InvalidInput, QuotaExceeded, SecretsUnreadable
from lagscale.kafka.probe.result import ProbeResult
from lagscale.store.registry import clusters
from lagscale.store.registry.monitor_spec import MonitorSpec
from lagscale.store.registry.session import AccessScope, RegistryDatabase, Row
from services.api.monitors.drafts import parse_draft
from services.api.operations import Operations
from services.api.preflight.preflight import Preflights
from services.api.schemas import MonitorIn, WarningOut
from services.api.validation.schemas import (
    CurrentVerdictOut,
    FieldErrorOut,
    GroupCheckOut,
    TopicCheckOut,
    ValidationOut,
)
from services.api.validation.warnings import (
    build_unmeasured_verdict,
    build_window,
    check_topics,
    find_monitor_warnings,
    resolve_topics,
)
from services.api.verdicts.reader import VerdictStore

_NO_CLUSTER = FieldError("cluster", "is no cluster of this tenant; register it first")
#: Verdicts that say no more than that there are no samples.
_NO_SAMPLES = {Reason.NO_DATA, Reason.NOTHING_TO_MEASURE}


class Validation:
    """Validates monitors, as they are registered and before."""

    def __init__(
        self, database: RegistryDatabase, operations: Operations, preflights: Preflights, verdicts: VerdictStore
    ) -> None:
        """Take the parts; verdicts are judged in the scaler's role, of targets found behind the caller's wall."""
        self._database = database
        self._operations = operations
        self._preflights = preflights
        self._verdicts = verdicts

    async def check(self, scope: AccessScope, tenant: str, given: MonitorIn) -> ValidationOut:
        """What registering this monitor would say.

        Raises:
            NotFound: there is no such tenant for this caller.
            StoreUnavailable: the store did not answer.
        """
        field_errors: list[FieldError] = []
        spec: MonitorSpec | None = None
        async with self._database.tenant(scope, tenant) as session:
            try:
                spec = self._operations.build_spec(parse_draft(given.name or "unnamed", given), session)
            except InvalidInput as error:
                field_errors += error.field_errors
            cluster = await clusters.find_by_name(session, given.cluster)
        if cluster is None:
            field_errors.append(_NO_CLUSTER)
        if spec is None or cluster is None:
            return ValidationOut(
                valid=False, errors=[FieldErrorOut(field=item.field, text=item.text) for item in field_errors]
            )
        if self._preflights.is_disabled:
            return ValidationOut(valid=True, window=build_window(spec.policy))
        return await self._check_on_cluster(scope, tenant, spec, cluster)

    async def _check_on_cluster(
        self, scope: AccessScope, tenant: str, spec: MonitorSpec, cluster: Row
    ) -> ValidationOut:
        result, busy_message = await self._probe_cluster(tenant, spec, cluster)
        meant_topics = resolve_topics(spec, result)
        topics = None if meant_topics is None else check_topics(spec, result, meant_topics)
        warnings = (
            [WarningOut(field="cluster", text=busy_message)]
            if busy_message
            else find_monitor_warnings(spec, result, topics)
        )
        group = next((item for item in result.groups if item.name == spec.consumer_group), None)
        return ValidationOut(
            valid=True,
            warnings=warnings,
            topics=topics or [],
            group=None if group is None else GroupCheckOut(name=group.name, kind=group.kind, members=group.members),
            window=build_window(spec.policy),
            current_verdict=await self._build_current_verdict(scope, tenant, spec, cluster, topics),
        )

    async def _probe_cluster(self, tenant: str, spec: MonitorSpec, cluster: Row) -> tuple[ProbeResult, str]:
        """What is found, and why the cluster was not even asked."""
        try:
            result = await self._preflights.run(
                tenant,
                cluster,
                groups={spec.consumer_group: spec.topics},
                each_address=False,
                with_topic_names=spec.pattern is not None,
                wait_for_slot=True,
            )
        except (Conflict, QuotaExceeded, SecretsUnreadable) as busy_message:
            return ProbeResult(problem="busy"), f"Topics and group were not checked. {busy_message.message}"
        return result, ""

    async def _build_current_verdict(
        self, scope: AccessScope, tenant: str, spec: MonitorSpec, cluster: Row, topics: list[TopicCheckOut] | None
    ) -> CurrentVerdictOut:
        """The verdict by stored samples, where all that the monitor means is measured already."""
        names = [topic.name for topic in topics or ()]
        async with self._database.tenant(scope, tenant) as session:
            targets = await clusters.find_measured_targets(
                session,
                int(cluster["id"]),
                spec.consumer_group,
                topics=names,
                isolation=spec.policy.isolation_level.value,
                limitation=spec.limitation,
            )
        fresh = build_unmeasured_verdict(spec.policy, topics)
        if not names or set(targets.values()) != set(names):
            return fresh
        request = VerdictRequest(int(cluster["tenant_id"]), tuple(sorted(targets)), spec.policy)
        judgment = (await self._verdicts.judge([request], evidence=True))[0]
        if judgment.reason in _NO_SAMPLES:
            return fresh
        return CurrentVerdictOut(
            verdict=judgment.verdict.value,
            sentence=describe_verdict(judgment, spec.policy, targets),
            value=judgment.value,
            measured=True,
            lag=fresh.lag,
        )
