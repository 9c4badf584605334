"""Plans: desired state against current state, as objects to create, change and delete; built, then executed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lagscale.domain.policy.keys import KEYS_BY_NAME
from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.tenancy import suggest_names
from lagscale.errors import (
    Conflict,
    FieldError,
    InvalidInput,
    LagscaleError,
    NotAuthenticated,
    NotFound,
    QuotaExceeded,
    StoreUnavailable,
)
from services.cli.objects.documents import walk_leaves
from services.cli.objects.kinds import BINDING, CLUSTER, KINDS, MONITOR, TENANT, ObjectRef
from services.cli.objects.manifests import DeclaredObjects, Manifest
from services.cli.objects.requests import (
    ApiObject,
    FieldChange,
    ObjectClient,
    ObjectWriteResult,
    PlanAction,
    PlanStep,
    Skipped,
)
from services.cli.objects.schemas import ApiSchemas, format_policy_value

#: Secrets in fields where they do not belong are hidden too, until the API rejects them.
_SECRET_PROPERTY = re.compile(r"(security|properties)\..*(pass|secret|token|key|credential|jaas)", re.IGNORECASE)
#: Placeholder of a value that is never printed.
HIDDEN = "(hidden)"
_AUTOMATIC = "autoRegistered"


@dataclass(slots=True)
class _CurrentState:
    """What was read from the API: objects, and the names of clusters that monitors of the files use."""

    objects: dict[ObjectRef, ApiObject] = field(default_factory=dict)
    clusters: set[ObjectRef] = field(default_factory=set)


def build_plan(
    objects_api: ObjectClient,
    declared: DeclaredObjects,
    advance: Callable[[], None],
    *,
    prune: bool,
    field_errors: list[FieldError],
) -> list[PlanStep]:
    """One step per object in dependency order, then the deletions in reverse order.

    Invalid objects get no step. `prune` deletes undeclared objects: only of kinds that the files declare in the same
    tenant, never a tenant or a monitor that registered itself. `advance` is called after each compared object;
    `field_errors` receives all errors.

    Raises:
        LagscaleError: the API is not reachable, or rejects the key.
    """
    current = _fetch_state(objects_api, declared.manifests, prune=prune)
    by_ref = {one.ref: one for one in declared.manifests}
    to_compare = []
    for manifest in declared.manifests:
        own_errors = list(_validate(manifest, by_ref, current, objects_api.schemas, complete=declared.complete))
        field_errors += own_errors
        if manifest.valid_alone and not own_errors:
            to_compare.append(manifest)
    steps = _compare(objects_api, to_compare, current, advance, field_errors)
    return steps + (list(_build_deletions(by_ref, current)) if prune else [])


def _fetch_state(objects_api: ObjectClient, manifests: Sequence[Manifest], *, prune: bool) -> _CurrentState:
    current = _CurrentState(objects_api.get_many({ObjectRef(TENANT, one.ref.tenant) for one in manifests}))
    for tenant in current.objects.copy():
        of_tenant = [one for one in manifests if one.ref.tenant == tenant.tenant]
        for kind in KINDS[1:]:
            refs = {one.ref for one in of_tenant if one.ref.kind is kind}
            if refs and prune:
                current.objects |= objects_api.list_objects(kind, tenant.tenant)
            else:
                current.objects |= objects_api.get_many(refs)
        used = {_cluster_ref(one.ref, one.spec) for one in of_tenant if one.ref.kind is MONITOR}
        if used - current.objects.keys():
            current.clusters |= objects_api.list_objects(CLUSTER, tenant.tenant).keys()
    return current


def _validate(
    manifest: Manifest,
    declared: Mapping[ObjectRef, Manifest],
    current: _CurrentState,
    schemas: ApiSchemas,
    *,
    complete: bool,
) -> Iterator[FieldError]:
    """Errors of an object that depend on others; if documents are unreadable, its requirements may be in them."""
    ref = manifest.ref
    tenant = ObjectRef(TENANT, ref.tenant)
    if ref.kind is MONITOR:
        is_declared = tenant in declared and declared[tenant].valid_alone
        yield from _check_policy(manifest, declared[tenant].spec if is_declared else current.objects.get(tenant, {}))
    if tenant not in current.objects and tenant not in declared:
        if not complete:
            return
        text = f"tenant {ref.tenant} not found, or not visible with this API key, and not declared in these files"
        yield manifest.build_error(("metadata", "tenant"), text)
        return
    if complete and ref.kind is MONITOR and isinstance(manifest.spec.get("cluster"), str):
        cluster = _cluster_ref(ref, manifest.spec)
        available = {one.name for one in (*current.clusters, *declared) if one[:2] == cluster[:2]}
        if cluster not in current.objects and cluster.name not in available:
            near = suggest_names(cluster.name, available, 1)
            text = f"cluster {cluster.name} not found in tenant {ref.tenant}, and not declared in these files"
            yield manifest.build_error(("spec", "cluster"), text + (f"; did you mean {near[0]}?" if near else ""))
    given = any(manifest.spec.get(name) is not None for name in schemas.write_only_fields(ref.kind))
    if manifest.has_secrets and not given and not current.objects.get(ref, {}).get("hasSecrets"):
        text = "is required: the export contains no secrets, and none are stored here"
        yield manifest.build_error(("spec", "secrets"), text)


def _compare(
    objects_api: ObjectClient,
    manifests: Sequence[Manifest],
    current: _CurrentState,
    advance: Callable[[], None],
    field_errors: list[FieldError],
) -> list[PlanStep]:
    schemas = objects_api.schemas
    steps: dict[ObjectRef, PlanStep] = {}
    candidates: list[PlanStep] = []
    for manifest in manifests:
        step = _build_step(manifest, current.objects.get(manifest.ref), schemas)
        steps[manifest.ref] = step
        if step.action is not PlanAction.SAME and _can_dry_run(manifest, current, schemas):
            candidates.append(step)
        else:
            advance()
    results = objects_api.write_all(candidates, lambda *_: advance(), dry_run=True)
    for step, result in zip(candidates, results, strict=True):
        if isinstance(result, NotAuthenticated | StoreUnavailable):
            raise result
        if isinstance(result, InvalidInput) and step.manifest is not None:
            field_errors += [step.manifest.build_field_error(one.field, one.text) for one in result.field_errors]
        elif isinstance(result, LagscaleError):
            steps[step.ref] = replace(step, error=result)
        else:
            steps[step.ref] = _apply_dry_run(step, result, current.objects.get(step.ref), schemas)
    return list(steps.values())


def _build_step(manifest: Manifest, existing: ApiObject | None, schemas: ApiSchemas) -> PlanStep:
    """The step by the files alone; a dry run corrects what the API considers equal."""
    kind = manifest.ref.kind
    desired = schemas.normalize_spec(kind, manifest.spec)
    hidden = tuple(
        FieldChange(".".join(map(str, key_path)), None, HIDDEN)
        for name in sorted(schemas.write_only_fields(kind))
        if manifest.spec.get(name) is not None
        for key_path, _ in walk_leaves(manifest.spec[name], (name,))
    )
    if existing is None:
        return PlanStep(
            PlanAction.CREATE, manifest.ref, manifest, None, (*_compare_fields({}, desired), *hidden),
            warnings=tuple(_find_warnings(manifest)),
        )  # fmt: skip
    version = existing.get("version")
    # Declaring a monitor takes it over from the ScaledObject that registered it.
    adoption = [FieldChange(_AUTOMATIC, True, False)] if existing.get(_AUTOMATIC) else []
    differences = (*_compare_fields(schemas.normalize_spec(kind, existing), desired), *hidden, *adoption)
    action = PlanAction.CHANGE if differences else PlanAction.SAME
    return PlanStep(action, manifest.ref, manifest, version, differences)


def _can_dry_run(manifest: Manifest, current: _CurrentState, schemas: ApiSchemas) -> bool:
    return schemas.supports_dry_run(manifest.ref.kind) and all(
        ref in current.objects or ref in current.clusters for ref in _list_requirements(manifest.ref, manifest.spec)
    )


def _apply_dry_run(
    step: PlanStep, dry_result: ObjectWriteResult, existing: ApiObject | None, schemas: ApiSchemas
) -> PlanStep:
    """The step corrected by the result of its dry run."""
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
            _compare_fields(schemas.normalize_spec(kind, existing), schemas.normalize_spec(kind, dry_result.answer))
        )
        # Changes that are not fields of the spec.
        shown += [one for one in step.differences if one.after == HIDDEN or one.name == _AUTOMATIC]
    return replace(step, differences=tuple(shown), warnings=warnings)


class PlanExecutor:
    """Executes a plan in dependency order; a failed step does not stop independent ones.

    `results` grows with each step, so that an interrupted run can still print them.
    """

    def __init__(self, objects_api: ObjectClient, advance: Callable[[], None]) -> None:
        """Prepare for the API; `advance` is called after each step."""
        self._objects_api = objects_api
        self._advance = advance
        self.results: dict[ObjectRef, PlanStep] = {}

    def run(self, steps: Sequence[PlanStep]) -> None:
        """Write, then delete, then retry the writes that a deleted object prevented.

        New objects are created before old ones are deleted, so that nothing is unregistered in between. If that is
        not possible (a quota is exhausted, a binding excludes the new one), the second attempt succeeds.
        """
        self.results |= {step.ref: step for step in steps if step.action is PlanAction.SAME}
        writing = [step for step in steps if step.action in {PlanAction.CREATE, PlanAction.CHANGE}]
        self._write(writing)
        deleting = [step for step in steps if step.action is PlanAction.DELETE]
        for kind in reversed(KINDS):
            self._objects_api.delete_all([step for step in deleting if step.ref.kind is kind], self._set_result)
        if any(self.results[step.ref].error is None for step in deleting):
            retryable = (Conflict, QuotaExceeded, Skipped)
            self._write([step for step in writing if isinstance(self.results[step.ref].error, retryable)])

    def _write(self, steps: Sequence[PlanStep]) -> None:
        for kind in KINDS:
            writable = []
            for step in (step for step in steps if step.ref.kind is kind):
                failed_requirement = self._find_failed_requirement(step)
                if failed_requirement is None:
                    writable.append(step)
                else:
                    self._set_result(step, Skipped(f"skipped: requires {failed_requirement}, which failed"))
            self._objects_api.write_all(writable, self._set_result)

    def _find_failed_requirement(self, step: PlanStep) -> ObjectRef | None:
        """An object that the step requires and that could not be created."""
        for ref in _list_requirements(step.ref, step.spec):
            result = self.results.get(ref)
            # An existing object that could not be changed still satisfies the requirement.
            if result is not None and result.error is not None and result.action is PlanAction.CREATE:
                return ref
        return None

    def _set_result(self, step: PlanStep, result: object) -> None:
        self._advance()
        self.results[step.ref] = _describe_result(step, result)


def _describe_result(step: PlanStep, result: object) -> PlanStep:
    """The step with the action that was taken, or with its error."""
    if isinstance(result, NotFound) and step.action is PlanAction.DELETE:
        # Deleted by somebody else in the meantime.
        return replace(step, action=PlanAction.SAME)
    if isinstance(result, LagscaleError):
        return replace(step, error=result)
    if not isinstance(result, ObjectWriteResult):
        return step
    # Only the API can compare secrets.
    existing = PlanAction.SAME if result.same else PlanAction.CHANGE
    warnings = tuple(dict.fromkeys((*step.warnings, *result.warnings)))
    return replace(step, action=PlanAction.CREATE if result.created else existing, error=None, warnings=warnings)


def _list_requirements(ref: ObjectRef, spec: Mapping[str, Any]) -> list[ObjectRef]:
    """The objects that must exist before this one."""
    required = [] if ref.kind is TENANT else [ObjectRef(TENANT, ref.tenant)]
    return [*required, _cluster_ref(ref, spec)] if ref.kind is MONITOR else required


def _cluster_ref(ref: ObjectRef, spec: Mapping[str, Any]) -> ObjectRef:
    return ObjectRef(CLUSTER, ref.tenant, str(spec.get("cluster")))


def _check_policy(manifest: Manifest, tenant: Mapping[str, Any]) -> Iterator[FieldError]:
    """Errors of the policy by the domain's rules, with the tenant's defaults."""
    texts: dict[str, str] = {}
    for given in (tenant.get("policyDefaults"), manifest.spec.get("policy")):
        if isinstance(given, Mapping):
            available = {name: format_policy_value(value) for name, value in given.items() if name in KEYS_BY_NAME}
            texts |= {name: text for name, text in available.items() if text}
    try:
        # Only the API knows the scraper's tick.
        parse_policy(texts, tick_seconds=0.0, minimum_interval=int(tenant.get("minSamplingSeconds", 1)))
    except InvalidInput as error:
        for field_error in error.field_errors:
            yield manifest.build_error(("spec", "policy", field_error.field), field_error.text)


def _compare_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[FieldChange]:
    was = {".".join(map(str, key_path)): value for key_path, value in walk_leaves(before) if key_path}
    will = {".".join(map(str, key_path)): value for key_path, value in walk_leaves(after) if key_path}
    for name in sorted(was.keys() | will.keys()):
        if was.get(name) != will.get(name):
            shown = _SECRET_PROPERTY.match(name) is None
            yield FieldChange(name, *((was.get(name), will.get(name)) if shown else (None, HIDDEN)))


def _find_warnings(manifest: Manifest) -> Iterator[str]:
    """Missing secrets of a new cluster."""
    if manifest.ref.kind is not CLUSTER:
        return
    security = manifest.spec.get("security") or {}
    secrets = manifest.spec.get("secrets") or {}
    mechanism = str(security.get("mechanism") or security.get("sasl") or "").upper().replace("_", "-")
    if (mechanism in {"PLAIN", "PLAINTEXT"} or mechanism.startswith("SCRAM")) and not secrets.get("password"):
        yield "no password (spec.secrets.password); the broker will reject the connection"
    if (security.get("certificate") or security.get("cert")) and not secrets.get("key"):
        yield "certificate without its key (spec.secrets.key)"


def _build_deletions(declared: Mapping[ObjectRef, Manifest], current: _CurrentState) -> Iterator[PlanStep]:
    # Only kinds that the files declare were listed, in the tenants of the files.
    undeclared = [
        (ref, answer)
        for ref, answer in current.objects.items()
        if ref not in declared
        and ref.kind is not TENANT
        # Registered by KEDA; it expires when KEDA stops asking.
        and not answer.get(_AUTOMATIC)
    ]
    for ref, answer in sorted(undeclared, key=lambda one: one[0].sort_key, reverse=True):
        yield PlanStep(PlanAction.DELETE, ref, version=None if ref.kind is BINDING else answer.get("version"))
