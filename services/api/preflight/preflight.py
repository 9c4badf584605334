"""Looks at a registered cluster: reachable, authenticated, rights one by one; and warnings from what was found."""

from __future__ import annotations

from dataclasses import asdict

from lagscale.errors import Conflict, LagscaleError, QuotaExceeded, SecretReferenceBroken, SecretsUnreadable
from lagscale.kafka.addresses import AddressRules
from lagscale.kafka.probe.result import AddressSeen, Findings, Holding, Outcome, Question, Step
from lagscale.kafka.probe.runner import Looks
from lagscale.kafka.secrets import Outside, resolved
from lagscale.store.encryption import SecretBox
from lagscale.store.registry import clusters
from lagscale.store.registry.session import RegistryDatabase, Row, Scope
from lagscale.store.registry.watched import watched
from services.api.metrics import LOOKS
from services.api.preflight.schemas import PreflightOut
from services.api.schemas import WarningOut

OFF = "Looking at clusters is switched off: LAGSCALE_PREFLIGHT_SECONDS is 0."
_OWN_MOUNT = (
    ". The API reads references by itself: mount the tenants' secrets into it as into the scraper, or see the cluster's "
    "state once it is polled."
)
_NOTHING_OUTSIDE = Outside()
_MOST_WARNINGS = 20
_STEPS = ("resolved", "connected", "tls", "authenticated", "answered")


class Preflights:
    """Preflights of clusters. The transaction that finds the cluster is closed before the cluster is asked anything."""

    def __init__(
        self,
        database: RegistryDatabase,
        box: SecretBox,
        rules: AddressRules,
        looks: Looks,
        outside: Outside = _NOTHING_OUTSIDE,
    ) -> None:
        """Take the parts; references to secrets lead to what this process has `outside`."""
        self._database = database
        self._box = box
        self._rules = rules
        self._looks = looks
        self._outside = outside

    @property
    def off(self) -> bool:
        """Whether clusters are never looked at."""
        return self._looks.seconds == 0

    async def of(self, scope: Scope, tenant: str, name: str) -> PreflightOut:
        """The preflight of one cluster.

        Raises:
            NotFound: there is no such cluster for this caller.
            Conflict: it is being looked at, or looks are switched off.
            QuotaExceeded: too many looks are under way.
            SecretsUnreadable: the stored secret cannot be decrypted.
        """
        async with self._database.tenant(scope, tenant) as work:
            row = await clusters.named(work, name)
            groups = await watched(work, row["id"])
        if self.off:
            raise Conflict(OFF)
        found = await self.look(tenant, row, groups=groups)
        return _shown(name, found)

    async def warnings(self, scope: Scope, tenant: str, row: Row) -> list[WarningOut]:
        """What a look at a cluster just registered says; never an error because of the cluster."""
        if self.off:
            return []
        async with self._database.tenant(scope, tenant) as work:
            groups = await watched(work, row["id"])
        try:
            return warnings_of(await self.look(tenant, row, groups=groups, patient=True))
        except (Conflict, QuotaExceeded, SecretsUnreadable) as busy:
            return [_not_looked(busy)]

    async def look(
        self,
        tenant: str,
        row: Row,
        *,
        groups: dict[str, tuple[str, ...]] | None = None,
        topics: tuple[str, ...] = (),
        each_address: bool = True,
        listing: bool = False,
        patient: bool = False,
    ) -> Findings:
        """Look at a cluster of the tenant by its row; see `Question` and `Looks.look`.

        Raises:
            Conflict, QuotaExceeded: as `of`.
            SecretsUnreadable: the stored secret cannot be decrypted.
        """
        sealed = row["secrets"]
        try:
            secrets = resolved(
                tenant, {} if sealed is None else self._box.open(bytes(sealed)), row["secret_references"], self._outside
            )
        except SecretReferenceBroken as broken:
            return Findings(problem="reference_broken", text=f"{broken.message}{_OWN_MOUNT}")
        question = Question(
            bootstrap=tuple(row["bootstrap"]),
            security=row["security"],
            secrets=secrets,
            properties=row["properties"],
            rules=self._rules.text,
            seconds=self._looks.seconds,
            groups=groups or {},
            topics=topics,
            each_address=each_address,
            listing=listing,
        )
        found = await self._looks.look(int(row["tenant_id"]), int(row["id"]), question, patient=patient)
        LOOKS.labels(found.problem or "ok").inc()
        return found


def _not_looked(why: LagscaleError) -> WarningOut:
    return WarningOut(field="preflight", text=f"The cluster was not looked at. {why.message}")


def _shown(name: str, found: Findings) -> PreflightOut:
    warnings = warnings_of(found)
    unknown = [one for one in found.rights if one.holding is Holding.NOT_KNOWN and one.name]
    return PreflightOut.model_validate(
        asdict(found, dict_factory=_plain)
        | {"cluster": name, "ok": not warnings and not unknown and not found.problem, "warnings": warnings}
    )


def _plain(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The fields that are shown; others serve the validation of monitors."""
    return {name: value for name, value in pairs if name not in {"topics", "groups", "listed"}}


def warnings_of(found: Findings) -> list[WarningOut]:
    """What is wrong, each with the way out; the most telling first, and not more than can be read."""
    warnings = [
        WarningOut(field=f"bootstrapServers.{number}", text=f"{seen.address}: {step.text}")
        for number, seen in enumerate(found.addresses)
        for step in _failed(seen)
    ]
    warnings += [
        WarningOut(field="bootstrapServers", text=f"{_who(seen)} advertises {seen.address}: {step.text}")
        for seen in found.advertised
        for step in _failed(seen)
    ]
    if found.problem and not warnings:
        warnings.append(WarningOut(field="bootstrapServers", text=found.text))
    for right in found.rights:
        if right.holding is Holding.DENIED:
            what = f"the {right.kind}" + (f" {right.name}" if right.name else "")
            text = f"The right {right.right} on {what} is missing. {right.text} Grant it: {right.grant}"
            warnings.append(WarningOut(field="rights", text=text))
    left = len(warnings) - _MOST_WARNINGS
    if left > 0:
        warnings = warnings[:_MOST_WARNINGS]
        warnings.append(WarningOut(field="preflight", text=f"{left} more like these; see the cluster's preflight."))
    return warnings


def _who(seen: AddressSeen) -> str:
    return "A broker" if seen.broker is None else f"Broker {seen.broker}"


def _failed(seen: AddressSeen) -> list[Step]:
    steps: list[Step] = [getattr(seen, name) for name in _STEPS]
    return [step for step in steps if step.outcome is Outcome.FAILED]
