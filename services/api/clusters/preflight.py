"""Preflight of a registered cluster: reachable, authenticated, each permission; and warnings from the result."""

from __future__ import annotations

from dataclasses import asdict

import structlog

from lagscale.errors import Conflict, LagscaleError, QuotaExceeded, SecretReferenceBroken, SecretsUnreadable
from lagscale.kafka.addresses import AddressRules
from lagscale.kafka.probe.result import AccessStatus, AddressResult, ProbeRequest, ProbeResult, ProbeStep, StepOutcome
from lagscale.kafka.probe.runner import ProbeRunner
from lagscale.kafka.secrets import SecretSources, resolve_secrets
from lagscale.store.encryption import Keyring
from lagscale.store.registry import clusters
from lagscale.store.registry.session import Row
from services.api.clusters.schemas import PreflightOut
from services.api.deps import TenantAccess
from services.api.metrics import PREFLIGHT_PROBES
from services.api.schemas import WarningOut

log = structlog.get_logger(__name__)

_DISABLED = "Preflights are disabled: LAGSCALE_API_PREFLIGHT_TIMEOUT_SECONDS is 0."
_OWN_MOUNT = (
    ". The API resolves references itself: mount the tenants' secrets into it as into the scraper, or see the state of the "
    "cluster once it is polled."
)
_NO_SECRET_SOURCES = SecretSources()
_MAX_WARNINGS = 20
#: Field of a result -> of the response, where the names differ.
_RENAMED = {"kind": "resource_type"}
_STEPS = ("resolved", "connected", "tls", "authenticated", "answered")


class Preflights:
    """Runs preflights. The transaction that reads the cluster is closed before Kafka is connected to."""

    def __init__(
        self,
        keyring: Keyring,
        rules: AddressRules,
        probe_runner: ProbeRunner,
        secret_sources: SecretSources = _NO_SECRET_SOURCES,
    ) -> None:
        """Take the parts; `secret_sources` are those that this process can read."""
        self._keyring = keyring
        self._rules = rules
        self._probe_runner = probe_runner
        self._secret_sources = secret_sources

    @property
    def is_disabled(self) -> bool:
        """Whether no cluster is ever probed."""
        return self._probe_runner.seconds == 0

    async def build_report(self, tenant: TenantAccess, name: str) -> PreflightOut:
        """The preflight of one cluster.

        Raises:
            NotFound: there is no such cluster for this caller.
            Conflict: a preflight of it is running, or preflights are disabled.
            QuotaExceeded: too many preflights are running.
            SecretsUnreadable: the stored secret cannot be decrypted.
        """
        async with tenant.session() as session:
            row = await clusters.read_by_name(session, name)
            groups = await clusters.read_watched_groups(session, row["id"])
        if self.is_disabled:
            raise Conflict(_DISABLED)
        result = await self.run(tenant.name, row, groups=groups)
        return _build_preflight(name, result)

    async def find_warnings(self, tenant: TenantAccess, row: Row) -> list[WarningOut]:
        """Warnings for a cluster that was just registered; never raises, because the registration has succeeded."""
        if self.is_disabled:
            return []
        try:
            async with tenant.session() as session:
                groups = await clusters.read_watched_groups(session, row["id"])
            return find_cluster_warnings(await self.run(tenant.name, row, groups=groups, wait_for_slot=True))
        except (Conflict, QuotaExceeded, SecretsUnreadable) as busy:
            return [WarningOut(field="preflight", text=f"The preflight was skipped. {busy.message}")]
        except LagscaleError as error:
            log.warning("preflight_failed", error=type(error).__name__)
            return []

    async def run(
        self,
        tenant: str,
        row: Row,
        *,
        groups: dict[str, tuple[str, ...]] | None = None,
        topics: tuple[str, ...] = (),
        read_committed: bool = False,
        each_address: bool = True,
        with_topic_names: bool = False,
        wait_for_slot: bool = False,
    ) -> ProbeResult:
        """Probe a cluster of the tenant by its row; see `ProbeRequest` and `ProbeRunner.run`.

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
            read_committed=read_committed,
            each_address=each_address,
            with_topic_names=with_topic_names,
        )
        result = await self._probe_runner.run(
            int(row["tenant_id"]), int(row["id"]), request, wait_for_slot=wait_for_slot
        )
        PREFLIGHT_PROBES.labels(result.problem or "ok").inc()
        return result


def _build_preflight(name: str, result: ProbeResult) -> PreflightOut:
    warnings = find_cluster_warnings(result)
    unknown = [one for one in result.access_checks if one.status is AccessStatus.UNKNOWN and one.name]
    return PreflightOut.model_validate(
        asdict(result, dict_factory=_select_fields)
        | {"cluster": name, "ok": not warnings and not unknown and not result.problem, "warnings": warnings}
    )


def _select_fields(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The fields of the response; the others serve the validation of monitors."""
    return {_RENAMED.get(name, name): value for name, value in pairs if name not in {"topics", "groups", "topic_names"}}


def find_cluster_warnings(result: ProbeResult) -> list[WarningOut]:
    """Problems with their remediation, the most specific first; at most 20."""
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
            text = f"Permission {permission.permission} on {what} is missing. {permission.text} To grant it: {permission.grant}"
            warnings.append(WarningOut(field="accessChecks", text=text))
        elif permission.status is AccessStatus.UNKNOWN and permission.name and permission.text:
            text = f"Permission {permission.permission} on the {permission.kind} {permission.name} is not known: {permission.text}"
            warnings.append(WarningOut(field="accessChecks", text=text))
    omitted = len(warnings) - _MAX_WARNINGS
    if omitted > 0:
        warnings = warnings[:_MAX_WARNINGS]
        warnings.append(
            WarningOut(field="preflight", text=f"{omitted} more warnings; run a preflight of the cluster to see them.")
        )
    return warnings


def _describe_listener(address_result: AddressResult) -> str:
    return "A broker" if address_result.broker is None else f"Broker {address_result.broker}"


def _find_failed_steps(address_result: AddressResult) -> list[ProbeStep]:
    steps: list[ProbeStep] = [getattr(address_result, name) for name in _STEPS]
    return [step for step in steps if step.outcome is StepOutcome.FAILED]
