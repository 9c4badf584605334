"""Executes a plan in dependency order; a failed step does not stop independent ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lagscale.errors import Conflict, LagscaleError, NotFound, QuotaExceeded
from services.cli.objects.kinds import CLUSTER, KINDS, MONITOR, TENANT, ObjectRef
from services.cli.objects.plan import PlanAction, PlanStep
from services.cli.objects.requests import ObjectClient, ObjectWrite, ObjectWriteResult, Skipped


@dataclass(frozen=True, slots=True)
class PlanStepResult:
    """Result of a step.

    Attributes:
        step: with the action that was taken; SAME if the object was already up to date.
        error: why the step failed.
    """

    step: PlanStep
    error: LagscaleError | None = None


class PlanExecutor:
    """Executes a plan. `results` grows with each step, so that an interrupted run can still print them."""

    def __init__(self, objects_api: ObjectClient, advance: Callable[[], None]) -> None:
        """Prepare for the API; `advance` is called after each step."""
        self._objects_api = objects_api
        self._advance = advance
        self._steps: dict[ObjectRef, PlanStep] = {}
        self.results: dict[ObjectRef, PlanStepResult] = {}

    def run(self, steps: Sequence[PlanStep]) -> None:
        """Write, then delete, then retry the writes that a deleted object prevented.

        New objects are created before old ones are deleted, so that nothing is unregistered in between. If that is
        not possible (a quota is exhausted, a binding excludes the new one), the second attempt succeeds.
        """
        self._steps = {step.ref: step for step in steps}
        self.results |= {step.ref: PlanStepResult(step) for step in steps if step.action is PlanAction.SAME}
        writing = [step for step in steps if step.action in {PlanAction.CREATE, PlanAction.CHANGE}]
        self._write(writing)
        deleting = [step for step in steps if step.action is PlanAction.DELETE]
        self._delete(deleting)
        if any(self.results[step.ref].error is None for step in deleting):
            retryable = (Conflict, QuotaExceeded, Skipped)
            self._write([step for step in writing if isinstance(self.results[step.ref].error, retryable)])

    def _write(self, steps: Sequence[PlanStep]) -> None:
        for kind in KINDS:
            of_kind = [step for step in steps if step.ref.kind is kind and step.manifest is not None]
            writable = []
            for step in of_kind:
                failed_requirement = self._find_failed_requirement(step)
                if failed_requirement is None:
                    writable.append(step)
                else:
                    self._set_result(step, Skipped(f"skipped: requires {failed_requirement}, which failed"))
            changes = [
                ObjectWrite(step.manifest, step.version, new=step.action is PlanAction.CREATE)
                for step in writable
                if step.manifest is not None
            ]
            self._objects_api.write_all(
                changes, lambda change, result: self._set_result(self._steps[change.manifest.ref], result)
            )

    def _delete(self, steps: Sequence[PlanStep]) -> None:
        for kind in reversed(KINDS):
            of_kind = [(step.ref, step.version) for step in steps if step.ref.kind is kind]
            self._objects_api.delete_all(of_kind, lambda one, result: self._set_result(self._steps[one[0]], result))

    def _find_failed_requirement(self, step: PlanStep) -> ObjectRef | None:
        """An object that the step requires and that could not be created."""
        required = [] if step.ref.kind is TENANT else [ObjectRef(TENANT, step.ref.tenant)]
        if step.ref.kind is MONITOR and step.manifest is not None:
            required.append(ObjectRef(CLUSTER, step.ref.tenant, str(step.manifest.spec["cluster"])))
        for ref in required:
            result = self.results.get(ref)
            # An existing object that could not be changed still satisfies the requirement.
            if result is not None and result.error is not None and result.step.action is PlanAction.CREATE:
                return ref
        return None

    def _set_result(self, step: PlanStep, result: ObjectWriteResult | LagscaleError | None) -> None:
        self._advance()
        if isinstance(result, NotFound) and step.action is PlanAction.DELETE:
            # Deleted by somebody else in the meantime.
            self.results[step.ref] = PlanStepResult(replace(step, action=PlanAction.SAME))
        elif isinstance(result, LagscaleError):
            self.results[step.ref] = PlanStepResult(step, result)
        elif result is None:
            self.results[step.ref] = PlanStepResult(step)
        else:
            self.results[step.ref] = PlanStepResult(_describe_result(step, result))


def _describe_result(step: PlanStep, result: ObjectWriteResult) -> PlanStep:
    """The step with the action that was taken."""
    warnings = tuple(dict.fromkeys((*step.warnings, *result.warnings)))
    if result.created:
        action = PlanAction.CREATE
    elif result.same:
        # Only the API can compare secrets.
        action = PlanAction.SAME
    else:
        action = PlanAction.CHANGE
    return replace(step, action=action, warnings=warnings)
