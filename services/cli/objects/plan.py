"""Objects as they shall be against objects as they are: what is to be created, changed and deleted. Changes nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from lagscale.domain.policy.keys import KEYS_BY_NAME
from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.tenancy import suggest_names
from lagscale.errors import FieldError, InvalidInput, LagscaleError, NotAuthenticated, StoreUnavailable
from services.cli.objects.kinds import BINDING, CLUSTER, KINDS, MONITOR, TENANT, ObjectRef
from services.cli.objects.manifests import DeclaredObjects, Manifest
from services.cli.objects.references import walk_leaves
from services.cli.objects.remote import ApiObject, ObjectClient
from services.cli.objects.schemas import format_policy_value
from services.cli.objects.writes import ObjectWriteResult

#: People put secrets where none belong; until the API refuses them they are not shown either.
_SECRET_PROPERTY = re.compile(r"(security|properties)\..*(pass|secret|token|key|credential|jaas)", re.IGNORECASE)
#: In place of a value that is never shown.
HIDDEN = "(not shown)"
_AUTOMATIC = "autoRegistered"


class PlanAction(StrEnum):
    """What is to be done with an object."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    SAME = "same"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field that differs; None where it is not given."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class PlanStep:
    """What is to be done with one object.

    Attributes:
        manifest: as it shall be; None for one that is to be deleted.
        seen: the version that this stands on.
        differences: by field.
        rejection: why the API would not do it now.
        warnings: what will not work although it can be done.
    """

    action: PlanAction
    ref: ObjectRef
    manifest: Manifest | None = None
    version: int | None = None
    differences: tuple[FieldChange, ...] = ()
    rejection: LagscaleError | None = None
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class _CurrentState:
    """What is there now, as far as it was asked for."""

    objects: dict[ObjectRef, ApiObject] = field(default_factory=dict)
    clusters: dict[str, set[str]] = field(default_factory=dict)

    def has(self, ref: ObjectRef) -> bool:
        return ref in self.objects


class PlanBuilder:
    """Makes plans."""

    def __init__(self, remote: ObjectClient, advance: Callable[[], None]) -> None:
        """Prepare.

        Args:
            remote: the API.
            advance: called after each object that was looked at.
        """
        self._remote = remote
        self._schemas = remote.schemas
        self._advance = advance

    def build(self, declared: DeclaredObjects, *, prune: bool, field_errors: list[FieldError]) -> list[PlanStep]:
        """One step for each object, what others need first; then what is to be deleted, what needs others first.

        Args:
            declared: by the files; those that have faults of their own get no step.
            prune: delete what the files do not declare: only of kinds that they declare in the same tenant, never a
                tenant, and no monitor that registered itself.
            field_errors: takes every fault that is found.

        Raises:
            LagscaleError: the API does not answer, or refuses the key.
        """
        current = self._fetch_state(declared.manifests, prune=prune)
        by_ref = {one.ref: one for one in declared.manifests}
        to_compare = []
        for manifest in declared.manifests:
            own_faults = list(self._validate(manifest, by_ref, current, complete=declared.complete))
            field_errors += own_faults
            if manifest.valid_alone and not own_faults:
                to_compare.append(manifest)
        steps = self._compare(to_compare, current, field_errors)
        return steps + (list(_build_deletions(by_ref, current)) if prune else [])

    def _fetch_state(self, manifests: Sequence[Manifest], *, prune: bool) -> _CurrentState:
        current = _CurrentState()
        tenants = {ObjectRef(TENANT, one.ref.tenant) for one in manifests}
        for tenant in sorted(tenants, key=lambda ref: ref.sort_key):
            current.objects |= self._remote.get_many({tenant})
        for tenant in current.objects.copy():
            for kind in KINDS[1:]:
                refs = {one.ref for one in manifests if one.ref.kind is kind and one.ref.tenant == tenant.tenant}
                if refs:
                    current.objects |= (
                        self._remote.list_objects(kind, tenant.tenant) if prune else self._remote.get_many(refs)
                    )
            used = {ObjectRef(CLUSTER, tenant.tenant, name) for name in _list_cluster_names(manifests, tenant.tenant)}
            if used - current.objects.keys():
                clusters = self._remote.list_objects(CLUSTER, tenant.tenant)
                current.clusters[tenant.tenant] = {ref.name for ref in clusters}
        return current

    def _validate(
        self, manifest: Manifest, declared: Mapping[ObjectRef, Manifest], current: _CurrentState, *, complete: bool
    ) -> Iterator[FieldError]:
        """What is wrong with an object beside the others; what it needs may stand where nothing could be read."""
        ref = manifest.ref
        tenant = ObjectRef(TENANT, ref.tenant)
        if ref.kind is MONITOR:
            yield from _check_policy(manifest, _find_tenant(ref, declared, current))
        if not current.has(tenant) and tenant not in declared:
            if not complete:
                return
            text = (
                f"{ref.tenant} is no tenant that this key may see, and these files declare none; add a `kind: Tenant`"
            )
            yield manifest.build_error(("metadata", "tenant"), text)
            return
        if ref.kind is MONITOR and isinstance(manifest.spec.get("cluster"), str):
            name = str(manifest.spec["cluster"])
            cluster = ObjectRef(CLUSTER, ref.tenant, name)
            available = current.clusters.get(ref.tenant, set()) | {
                one.name for one in declared if one[:2] == cluster[:2]
            }
            if complete and not current.has(cluster) and cluster not in declared and name not in available:
                near = suggest_names(name, available, 1)
                text = f"{name} is no cluster of tenant {ref.tenant}, and these files declare none"
                yield manifest.build_error(("spec", "cluster"), text + (f"; did you mean {near[0]}?" if near else ""))
        if manifest.has_secrets and not self._has_secrets_given(manifest):
            stored = current.objects.get(ref, {}).get("hasSecrets")
            if not stored:
                text = "must be given: an export leaves secrets out, and there are none stored here"
                yield manifest.build_error(("spec", "secrets"), text)

    def _has_secrets_given(self, manifest: Manifest) -> bool:
        return any(manifest.spec.get(name) is not None for name in self._schemas.write_only_fields(manifest.ref.kind))

    def _compare(
        self, manifests: Sequence[Manifest], current: _CurrentState, field_errors: list[FieldError]
    ) -> list[PlanStep]:
        steps: dict[ObjectRef, PlanStep] = {}
        dry_run_candidates: list[Manifest] = []
        for manifest in manifests:
            step = self._build_step(manifest, current.objects.get(manifest.ref))
            steps[manifest.ref] = step
            if step.action is not PlanAction.SAME and self._can_dry_run(manifest, current):
                dry_run_candidates.append(manifest)
            else:
                self._advance()
        results = self._remote.dry_run_all(
            dry_run_candidates, lambda *_: self._advance(), lambda ref: steps[ref].version
        )
        for manifest, dry_result in zip(dry_run_candidates, results, strict=True):
            if isinstance(dry_result, NotAuthenticated | StoreUnavailable):
                raise dry_result
            if isinstance(dry_result, InvalidInput):
                field_errors += [
                    manifest.build_field_error(field_error.field, field_error.text)
                    for field_error in dry_result.field_errors
                ]
            elif isinstance(dry_result, LagscaleError):
                steps[manifest.ref] = replace(steps[manifest.ref], rejection=dry_result)
            else:
                steps[manifest.ref] = self._apply_dry_run(
                    steps[manifest.ref], dry_result, current.objects.get(manifest.ref)
                )
        return list(steps.values())

    def _build_step(self, manifest: Manifest, existing: ApiObject | None) -> PlanStep:
        """By what the files say alone; the API knows better what is the same to it."""
        kind = manifest.ref.kind
        desired = self._schemas.normalize_spec(kind, manifest.spec)
        hidden = tuple(
            FieldChange(".".join(map(str, key_path)), None, HIDDEN)
            for name in sorted(self._schemas.write_only_fields(kind))
            if manifest.spec.get(name) is not None
            for key_path, _ in walk_leaves(manifest.spec[name], (name,))
        )
        if existing is None:
            return PlanStep(
                PlanAction.CREATE, manifest.ref, manifest, None, (*_compare_fields({}, desired), *hidden),
                warnings=tuple(_find_warnings(manifest)),
            )  # fmt: skip
        version = existing.get("version")
        # Who declares a monitor takes it over from the ScaledObject that registered it.
        adoption = [FieldChange(_AUTOMATIC, True, False)] if existing.get(_AUTOMATIC) else []
        differences = (*_compare_fields(self._schemas.normalize_spec(kind, existing), desired), *hidden, *adoption)
        action = PlanAction.CHANGE if differences else PlanAction.SAME
        return PlanStep(action, manifest.ref, manifest, version, differences)

    def _can_dry_run(self, manifest: Manifest, current: _CurrentState) -> bool:
        ref = manifest.ref
        needed = [] if ref.kind is TENANT else [ObjectRef(TENANT, ref.tenant)]
        if ref.kind is MONITOR:
            name = str(manifest.spec["cluster"])
            if name not in current.clusters.get(ref.tenant, set()):
                needed.append(ObjectRef(CLUSTER, ref.tenant, name))
        return self._schemas.supports_dry_run(ref.kind) and all(current.has(one) for one in needed)

    def _apply_dry_run(self, step: PlanStep, dry_result: ObjectWriteResult, existing: ApiObject | None) -> PlanStep:
        """The step after the API told what it would come to."""
        warnings = (*step.warnings, *dry_result.warnings)
        if existing is None or step.version is None:
            return replace(step, warnings=warnings)
        if dry_result.same:
            return replace(step, action=PlanAction.SAME, differences=(), warnings=warnings)
        kind = step.ref.kind
        if dry_result.differences is not None:
            shown = [FieldChange(name, *pair) for name, pair in sorted(dry_result.differences.items())]
        else:
            shown = list(
                _compare_fields(
                    self._schemas.normalize_spec(kind, existing), self._schemas.normalize_spec(kind, dry_result.answer)
                )
            )
            # What no spec says, but this change comes to.
            shown += [one for one in step.differences if one.after == HIDDEN or one.name == _AUTOMATIC]
        return replace(step, differences=tuple(shown), warnings=warnings)


def _list_cluster_names(manifests: Iterable[Manifest], tenant: str) -> set[str]:
    return {str(one.spec.get("cluster")) for one in manifests if one.ref.kind is MONITOR and one.ref.tenant == tenant}


def _find_tenant(ref: ObjectRef, declared: Mapping[ObjectRef, Manifest], current: _CurrentState) -> Mapping[str, Any]:
    tenant = ObjectRef(TENANT, ref.tenant)
    return (
        declared[tenant].spec
        if tenant in declared and declared[tenant].valid_alone
        else current.objects.get(tenant, {})
    )


def _check_policy(manifest: Manifest, tenant: Mapping[str, Any]) -> Iterator[FieldError]:
    """Faults of the policy that need no API: the rules are the domain's, the tenant's defaults count."""
    texts: dict[str, str] = {}
    for given in (tenant.get("policyDefaults"), manifest.spec.get("policy")):
        if isinstance(given, Mapping):
            available = {name: format_policy_value(value) for name, value in given.items() if name in KEYS_BY_NAME}
            texts |= {name: text for name, text in available.items() if text}
    try:
        # The tick of the scraper is the API's to know.
        parse_policy(texts, tick_seconds=0.0, minimum_interval=int(tenant.get("minSamplingSeconds", 1)))
    except InvalidInput as wrong:
        for field_error in wrong.field_errors:
            yield manifest.build_error(("spec", "policy", field_error.field), field_error.text)


def _compare_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[FieldChange]:
    was = {".".join(map(str, key_path)): value for key_path, value in walk_leaves(before) if key_path}
    will = {".".join(map(str, key_path)): value for key_path, value in walk_leaves(after) if key_path}
    for name in sorted(was.keys() | will.keys()):
        if was.get(name) != will.get(name):
            shown = _SECRET_PROPERTY.match(name) is None
            yield FieldChange(name, *((was.get(name), will.get(name)) if shown else (None, HIDDEN)))


def _find_warnings(manifest: Manifest) -> Iterator[str]:
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


def _build_deletions(declared: Mapping[ObjectRef, Manifest], current: _CurrentState) -> Iterator[PlanStep]:
    # Only what the files name was listed: kinds that they declare, in the tenants of these.
    undeclared = [
        (ref, answer)
        for ref, answer in current.objects.items()
        if ref not in declared
        and ref.kind is not TENANT
        # KEDA registered it, and it goes when KEDA stops asking.
        and not answer.get(_AUTOMATIC)
    ]
    for ref, answer in sorted(undeclared, key=lambda one: one[0].sort_key, reverse=True):
        yield PlanStep(PlanAction.DELETE, ref, version=None if ref.kind is BINDING else answer.get("version"))
