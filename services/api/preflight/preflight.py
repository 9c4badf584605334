"""Looks at a registered cluster: reachable, authenticated, rights one by one; and warnings from what was found."""

from __future__ import annotations

from dataclasses import asdict

from lagscale.errors import Conflict, LagscaleError, QuotaExceeded, SecretReferenceBroken, SecretsUnreadable
from lagscale.kafka.addresses import AddressRules
from lagscale.kafka.probe.result import AccessStatus, AddressResult, ProbeRequest, ProbeResult, ProbeStep, StepOutcome
from lagscale.kafka.probe.runner import ProbeRunner
from lagscale.kafka.secrets import SecretSources, resolve_secrets
from lagscale.store.encryption import Keyring
from lagscale.store.registry import clusters
from lagscale.store.registry.session import AccessScope, RegistryDatabase, Row
from services.api.metrics import PREFLIGHT_PROBES
from services.api.preflight.schemas import PreflightOut
from services.api.schemas import WarningOut

DISABLED_MESSAGE = "Looking at clusters is switched off: LAGSCALE_API_PREFLIGHT_TIMEOUT_SECONDS is 0."
_OWN_MOUNT = (
    ". The API reads references by itself: mount the tenants' secrets into it as into the scraper, or see the cluster's "
    "state once it is polled."
)
_NO_SECRET_SOURCES = SecretSources()
_MAX_WARNINGS = 20
_STEPS = ("resolved", "connected", "tls", "authenticated", "answered")


class Preflights:
    """Preflights of clusters. The transaction that finds the cluster is closed before the cluster is asked anything."""

    def __init__(
        self,
        database: RegistryDatabase,
        keyring: Keyring,
        rules: AddressRules,
        probe_runner: ProbeRunner,
        secret_sources: SecretSources = _NO_SECRET_SOURCES,
    ) -> None:
        """Take the parts; references to secrets lead to what this process has `secret_sources`."""
        self._database = database
        self._keyring = keyring
        self._rules = rules
        self._probe_runner = probe_runner
        self._secret_sources = secret_sources

    @property
    def is_disabled(self) -> bool:
        """Whether clusters are never looked at."""
        return self._probe_runner.seconds == 0

    async def build_report(self, scope: AccessScope, tenant: str, name: str) -> PreflightOut:
        """The preflight of one cluster.

        Raises:
            NotFound: there is no such cluster for this caller.
            Conflict: it is being looked at, or looks are switched off.
            QuotaExceeded: too many looks are under way.
            SecretsUnreadable: the stored secret cannot be decrypted.
        """
        async with self._database.tenant(scope, tenant) as session:
            row = await clusters.read_by_name(session, name)
            groups = await clusters.read_watched_groups(session, row["id"])
        if self.is_disabled:
            raise Conflict(DISABLED_MESSAGE)
        result = await self.run(tenant, row, groups=groups)
        return _build_preflight(name, result)

    async def warnings(self, scope: AccessScope, tenant: str, row: Row) -> list[WarningOut]:
        """What a look at a cluster just registered says; never an error because of the cluster."""
        if self.is_disabled:
            return []
        async with self._database.tenant(scope, tenant) as session:
            groups = await clusters.read_watched_groups(session, row["id"])
        try:
            return find_cluster_warnings(await self.run(tenant, row, groups=groups, wait_for_slot=True))
        except (Conflict, QuotaExceeded, SecretsUnreadable) as error_busy:
            return [_build_skipped_warning(error_busy)]

    async def run(
        self,
        tenant: str,
        row: Row,
        *,
        groups: dict[str, tuple[str, ...]] | None = None,
        topics: tuple[str, ...] = (),
        each_address: bool = True,
        with_topic_names: bool = False,
        wait_for_slot: bool = False,
    ) -> ProbeResult:
        """Look at a cluster of the tenant by its row; see `ProbeRequest` and `ProbeRunner.run`.

        Raises:
            Conflict, QuotaExceeded: as `build_report`.
            SecretsUnreadable: the stored secret cannot be decrypted.
        """
        encrypted = row["secrets"]
        try:
            secrets = resolve_secrets(
                tenant,
                {} if encrypted is None else self._keyring.decrypt(bytes(encrypted)),
                row["secret_references"],
                self._secret_sources,
            )
        except SecretReferenceBroken as error:
            return ProbeResult(problem="reference_broken", text=f"{error.message}{_OWN_MOUNT}")
        request = ProbeRequest(
            bootstrap=tuple(row["bootstrap"]),
            security=row["security"],
            secrets=secrets,
            properties=row["properties"],
            rules=self._rules.text,
            seconds=self._probe_runner.seconds,
            groups=groups or {},
            topics=topics,
            each_address=each_address,
            with_topic_names=with_topic_names,
        )
        result = await self._probe_runner.run(
            int(row["tenant_id"]), int(row["id"]), request, wait_for_slot=wait_for_slot
        )
        PREFLIGHT_PROBES.labels(result.problem or "ok").inc()
        return result


def _build_skipped_warning(why: LagscaleError) -> WarningOut:
    return WarningOut(field="preflight", text=f"The cluster was not looked at. {why.message}")


def _build_preflight(name: str, result: ProbeResult) -> PreflightOut:
    warnings = find_cluster_warnings(result)
    unknown = [one for one in result.access_checks if one.status is AccessStatus.UNKNOWN and one.name]
    return PreflightOut.model_validate(
        asdict(result, dict_factory=_select_fields)
        | {"cluster": name, "ok": not warnings and not unknown and not result.problem, "warnings": warnings}
    )


def _select_fields(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The fields that are shown; others serve the validation of monitors."""
    return {name: value for name, value in pairs if name not in {"topics", "groups", "topic_names"}}


def find_cluster_warnings(result: ProbeResult) -> list[WarningOut]:
    """What is wrong, each with the way out; the most telling first, and not more than can be read."""
    warnings = [
        WarningOut(field=f"bootstrapServers.{number}", text=f"{address_result.address}: {step.text}")
        for number, address_result in enumerate(result.addresses)
        for step in _find_failed_steps(address_result)
    ]
    warnings += [
        WarningOut(
            field="bootstrapServers",
            text=f"{_describe_listener(address_result)} advertises {address_result.address}: {step.text}",
        )
        for address_result in result.advertised
        for step in _find_failed_steps(address_result)
    ]
    if result.problem and not warnings:
        warnings.append(WarningOut(field="bootstrapServers", text=result.text))
    for permission in result.access_checks:
        if permission.status is AccessStatus.DENIED:
            what = f"the {permission.kind}" + (f" {permission.name}" if permission.name else "")
            text = f"The right {permission.permission} on {what} is missing. {permission.text} Grant it: {permission.grant}"
            warnings.append(WarningOut(field="rights", text=text))
    omitted = len(warnings) - _MAX_WARNINGS
    if omitted > 0:
        warnings = warnings[:_MAX_WARNINGS]
        warnings.append(WarningOut(field="preflight", text=f"{omitted} more like these; see the cluster's preflight."))
    return warnings


def _describe_listener(address_result: AddressResult) -> str:
    return "A broker" if address_result.broker is None else f"Broker {address_result.broker}"


def _find_failed_steps(address_result: AddressResult) -> list[ProbeStep]:
    steps: list[ProbeStep] = [getattr(address_result, name) for name in _STEPS]
    return [step for step in steps if step.outcome is StepOutcome.FAILED]
