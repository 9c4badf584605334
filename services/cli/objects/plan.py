"""Objects as they shall be against objects as they are: what is to be created, changed and deleted. Changes nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from lagscale.domain.policy.keys import BY_NAME
from lagscale.domain.policy.policy import Policy
from lagscale.domain.tenancy import near_names
from lagscale.errors import Fault, InvalidInput, LagscaleError, NotAuthenticated, StoreUnavailable
from services.cli.objects.kinds import BINDING, CLUSTER, KINDS, MONITOR, TENANT, Ref
from services.cli.objects.manifests import Declared, Manifest
from services.cli.objects.references import leaves
from services.cli.objects.remote import Answer, Remote
from services.cli.objects.schemas import policy_text
from services.cli.objects.writes import Written

#: People put secrets where none belong; until the API refuses them they are not shown either.
_SECRETIVE = re.compile(r"(security|properties)\..*(pass|secret|token|key|credential|jaas)", re.IGNORECASE)
#: In place of a value that is never shown.
HIDDEN = "(not shown)"
_AUTOMATIC = "autoRegistered"


class Action(StrEnum):
    """What is to be done with an object."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    SAME = "same"


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that differs; None where it is not given."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done with one object.

    Attributes:
        manifest: as it shall be; None for one that is to be deleted.
        seen: the version that this stands on.
        differences: by field.
        refused: why the API would not do it now.
        warnings: what will not work although it can be done.
    """

    action: Action
    ref: Ref
    manifest: Manifest | None = None
    seen: int | None = None
    differences: tuple[Difference, ...] = ()
    refused: LagscaleError | None = None
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class _Seen:
    """What is there now, as far as it was asked for."""

    found: dict[Ref, Answer] = field(default_factory=dict)
    clusters: dict[str, set[str]] = field(default_factory=dict)

    def has(self, ref: Ref) -> bool:
        return ref in self.found


class Planner:
    """Makes plans."""

    def __init__(self, remote: Remote, advance: Callable[[], None]) -> None:
        """Prepare.

        Args:
            remote: the API.
            advance: called after each object that was looked at.
        """
        self._remote = remote
        self._schemas = remote.schemas
        self._advance = advance

    def plan(self, declared: Declared, *, prune: bool, faults: list[Fault]) -> list[Step]:
        """One step for each object, what others need first; then what is to be deleted, what needs others first.

        Args:
            declared: by the files; those that have faults of their own get no step.
            prune: delete what the files do not declare: only of kinds that they declare in the same tenant, never a
                tenant, and no monitor that registered itself.
            faults: takes every fault that is found.

        Raises:
            LagscaleError: the API does not answer, or refuses the key.
        """
        seen = self._see(declared.manifests, prune=prune)
        by_ref = {one.ref: one for one in declared.manifests}
        to_compare = []
        for manifest in declared.manifests:
            found = list(self._faults(manifest, by_ref, seen, complete=declared.complete))
            faults += found
            if manifest.sound and not found:
                to_compare.append(manifest)
        steps = self._compared(to_compare, seen, faults)
        return steps + (list(_pruned(by_ref, seen)) if prune else [])

    def _see(self, manifests: Sequence[Manifest], *, prune: bool) -> _Seen:
        seen = _Seen()
        tenants = {Ref(TENANT, one.ref.tenant) for one in manifests}
        for tenant in sorted(tenants, key=lambda ref: ref.rank):
            seen.found |= self._remote.those({tenant})
        for tenant in seen.found.copy():
            for kind in KINDS[1:]:
                refs = {one.ref for one in manifests if one.ref.kind is kind and one.ref.tenant == tenant.tenant}
                if refs:
                    seen.found |= self._remote.listed(kind, tenant.tenant) if prune else self._remote.those(refs)
            used = {Ref(CLUSTER, tenant.tenant, name) for name in _clusters(manifests, tenant.tenant)}
            if used - seen.found.keys():
                clusters = self._remote.listed(CLUSTER, tenant.tenant)
                seen.clusters[tenant.tenant] = {ref.name for ref in clusters}
        return seen

    def _faults(
        self, manifest: Manifest, declared: Mapping[Ref, Manifest], seen: _Seen, *, complete: bool
    ) -> Iterator[Fault]:
        """What is wrong with an object beside the others; what it needs may stand where nothing could be read."""
        ref = manifest.ref
        tenant = Ref(TENANT, ref.tenant)
        if ref.kind is MONITOR:
            yield from _of_policy(manifest, _tenant_of(ref, declared, seen))
        if not seen.has(tenant) and tenant not in declared:
            if not complete:
                return
            text = (
                f"{ref.tenant} is no tenant that this key may see, and these files declare none; add a `kind: Tenant`"
            )
            yield manifest.fault(("metadata", "tenant"), text)
            return
        if ref.kind is MONITOR and isinstance(manifest.spec.get("cluster"), str):
            name = str(manifest.spec["cluster"])
            cluster = Ref(CLUSTER, ref.tenant, name)
            known = seen.clusters.get(ref.tenant, set()) | {one.name for one in declared if one[:2] == cluster[:2]}
            if complete and not seen.has(cluster) and cluster not in declared and name not in known:
                near = near_names(name, known, 1)
                text = f"{name} is no cluster of tenant {ref.tenant}, and these files declare none"
                yield manifest.fault(("spec", "cluster"), text + (f"; did you mean {near[0]}?" if near else ""))
        if manifest.has_secrets and not self._given_secrets(manifest):
            stored = seen.found.get(ref, {}).get("hasSecrets")
            if not stored:
                text = "must be given: an export leaves secrets out, and there are none stored here"
                yield manifest.fault(("spec", "secrets"), text)

    def _given_secrets(self, manifest: Manifest) -> bool:
        return any(manifest.spec.get(name) is not None for name in self._schemas.hidden(manifest.ref.kind))

    def _compared(self, manifests: Sequence[Manifest], seen: _Seen, faults: list[Fault]) -> list[Step]:
        steps: dict[Ref, Step] = {}
        to_try: list[Manifest] = []
        for manifest in manifests:
            step = self._step(manifest, seen.found.get(manifest.ref))
            steps[manifest.ref] = step
            if step.action is not Action.SAME and self._can_be_tried(manifest, seen):
                to_try.append(manifest)
            else:
                self._advance()
        results = self._remote.tried(to_try, lambda *_: self._advance(), lambda ref: steps[ref].seen)
        for manifest, tried in zip(to_try, results, strict=True):
            if isinstance(tried, NotAuthenticated | StoreUnavailable):
                raise tried
            if isinstance(tried, InvalidInput):
                faults += [manifest.fault_of_field(fault.field, fault.text) for fault in tried.faults]
            elif isinstance(tried, LagscaleError):
                steps[manifest.ref] = replace(steps[manifest.ref], refused=tried)
            else:
                steps[manifest.ref] = self._told(steps[manifest.ref], tried, seen.found.get(manifest.ref))
        return list(steps.values())

    def _step(self, manifest: Manifest, present: Answer | None) -> Step:
        """By what the files say alone; the API knows better what is the same to it."""
        kind = manifest.ref.kind
        wanted = self._schemas.normal(kind, manifest.spec)
        hidden = tuple(
            Difference(".".join(map(str, way)), None, HIDDEN)
            for name in sorted(self._schemas.hidden(kind))
            if manifest.spec.get(name) is not None
            for way, _ in leaves(manifest.spec[name], (name,))
        )
        if present is None:
            return Step(
                Action.CREATE, manifest.ref, manifest, None, (*_differences({}, wanted), *hidden),
                warnings=tuple(_warnings(manifest)),
            )  # fmt: skip
        version = present.get("version")
        # Who declares a monitor takes it over from the ScaledObject that registered it.
        adopted = [Difference(_AUTOMATIC, True, False)] if present.get(_AUTOMATIC) else []
        differences = (*_differences(self._schemas.normal(kind, present), wanted), *hidden, *adopted)
        action = Action.CHANGE if differences else Action.SAME
        return Step(action, manifest.ref, manifest, version, differences)

    def _can_be_tried(self, manifest: Manifest, seen: _Seen) -> bool:
        ref = manifest.ref
        needed = [] if ref.kind is TENANT else [Ref(TENANT, ref.tenant)]
        if ref.kind is MONITOR:
            name = str(manifest.spec["cluster"])
            if name not in seen.clusters.get(ref.tenant, set()):
                needed.append(Ref(CLUSTER, ref.tenant, name))
        return self._schemas.tries(ref.kind) and all(seen.has(one) for one in needed)

    def _told(self, step: Step, tried: Written, present: Answer | None) -> Step:
        """The step after the API told what it would come to."""
        warnings = (*step.warnings, *tried.warnings)
        if present is None or step.seen is None:
            return replace(step, warnings=warnings)
        if tried.same:
            return replace(step, action=Action.SAME, differences=(), warnings=warnings)
        kind = step.ref.kind
        if tried.differences is not None:
            shown = [Difference(name, *pair) for name, pair in sorted(tried.differences.items())]
        else:
            shown = list(_differences(self._schemas.normal(kind, present), self._schemas.normal(kind, tried.answer)))
            # What no spec says, but this change comes to.
            shown += [one for one in step.differences if one.after == HIDDEN or one.name == _AUTOMATIC]
        return replace(step, differences=tuple(shown), warnings=warnings)


def _clusters(manifests: Iterable[Manifest], tenant: str) -> set[str]:
    return {str(one.spec.get("cluster")) for one in manifests if one.ref.kind is MONITOR and one.ref.tenant == tenant}


def _tenant_of(ref: Ref, declared: Mapping[Ref, Manifest], seen: _Seen) -> Mapping[str, Any]:
    tenant = Ref(TENANT, ref.tenant)
    return declared[tenant].spec if tenant in declared and declared[tenant].sound else seen.found.get(tenant, {})


def _of_policy(manifest: Manifest, tenant: Mapping[str, Any]) -> Iterator[Fault]:
    """Faults of the policy that need no API: the rules are the domain's, the tenant's defaults count."""
    texts: dict[str, str] = {}
    for given in (tenant.get("policyDefaults"), manifest.spec.get("policy")):
        if isinstance(given, Mapping):
            known = {name: policy_text(value) for name, value in given.items() if name in BY_NAME}
            texts |= {name: text for name, text in known.items() if text}
    try:
        # The tick of the scraper is the API's to know.
        Policy.parse(texts, tick_seconds=0.0, minimum_interval=int(tenant.get("minSamplingSeconds", 1)))
    except InvalidInput as wrong:
        for fault in wrong.faults:
            yield manifest.fault(("spec", "policy", fault.field), fault.text)


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    was = {".".join(map(str, way)): value for way, value in leaves(before) if way}
    will = {".".join(map(str, way)): value for way, value in leaves(after) if way}
    for name in sorted(was.keys() | will.keys()):
        if was.get(name) != will.get(name):
            shown = _SECRETIVE.match(name) is None
            yield Difference(name, *((was.get(name), will.get(name)) if shown else (None, HIDDEN)))


def _warnings(manifest: Manifest) -> Iterator[str]:
    """What a new cluster lacks."""
    if manifest.ref.kind is not CLUSTER:
        return
    security = manifest.spec.get("security") or {}
    secrets = manifest.spec.get("secrets") or {}
    mechanism = str(security.get("mechanism") or security.get("sasl") or "").upper().replace("_", "-")
    if (mechanism in {"PLAIN", "PLAINTEXT"} or mechanism.startswith("SCRAM")) and not secrets.get("password"):
        yield "no password is given for it (spec.secrets.password), so the broker will refuse it"
    if (security.get("certificate") or security.get("cert")) and not secrets.get("key"):
        yield "a certificate is given without its key (spec.secrets.key)"


def _pruned(declared: Mapping[Ref, Manifest], seen: _Seen) -> Iterator[Step]:
    # Only what the files name was listed: kinds that they declare, in the tenants of these.
    surplus = [
        (ref, answer)
        for ref, answer in seen.found.items()
        if ref not in declared
        and ref.kind is not TENANT
        # KEDA registered it, and it goes when KEDA stops asking.
        and not answer.get(_AUTOMATIC)
    ]
    for ref, answer in sorted(surplus, key=lambda one: one[0].rank, reverse=True):
        yield Step(Action.DELETE, ref, seen=None if ref.kind is BINDING else answer.get("version"))
