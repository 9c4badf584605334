"""Carries out a plan: step by step in the order in which objects need each other, whatever becomes of the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lagscale.errors import Conflict, LagscaleError, NotFound, QuotaExceeded
from services.cli.objects.kinds import CLUSTER, KINDS, MONITOR, TENANT, ObjectRef
from services.cli.objects.plan import PlanAction, PlanStep
from services.cli.objects.requests import ObjectClient, ObjectWrite, ObjectWriteResult, Skipped


@dataclass(frozen=True, slots=True)
class PlanStepResult:
    """What became of a step.

    Attributes:
        step: its action is what was really done; SAME for what turned out to be so already.
        error: why it was not done.
    """

    step: PlanStep
    error: LagscaleError | None = None


class PlanExecutor:
    """Carries out a plan. `outcomes` grows as results come in, so that an interrupted run can still tell them."""

    def __init__(self, remote: ObjectClient, advance: Callable[[], None]) -> None:
        """Prepare; `advance` is called after each step."""
        self._remote = remote
        self._advance = advance
        self._steps: dict[ObjectRef, PlanStep] = {}
        self.outcomes: dict[ObjectRef, PlanStepResult] = {}

    def run(self, steps: Sequence[PlanStep]) -> None:
        """Write, then delete; then once more what was in the way of what is deleted now.

        New objects come before the old ones go, so that nothing is unregistered in between. Where that cannot be (a
        quota is full, a binding excludes the new one), the second attempt makes it so.
        """
        self._steps = {step.ref: step for step in steps}
        self.outcomes |= {step.ref: PlanStepResult(step) for step in steps if step.action is PlanAction.SAME}
        writing = [step for step in steps if step.action in {PlanAction.CREATE, PlanAction.CHANGE}]
        self._write(writing)
        deleting = [step for step in steps if step.action is PlanAction.DELETE]
        self._delete(deleting)
        if any(self.outcomes[step.ref].error is None for step in deleting):
            in_the_way = (Conflict, QuotaExceeded, Skipped)
            self._write([step for step in writing if isinstance(self.outcomes[step.ref].error, in_the_way)])

    def _write(self, steps: Sequence[PlanStep]) -> None:
        for kind in KINDS:
            of_kind = [step for step in steps if step.ref.kind is kind and step.manifest is not None]
            writable = []
            for step in of_kind:
                failed_requirement = self._find_failed_requirement(step)
                if failed_requirement is None:
                    writable.append(step)
                else:
                    self._set_outcome(step, Skipped(f"was not tried: it needs {failed_requirement}, which was refused"))
            changes = [
                ObjectWrite(step.manifest, step.version, new=step.action is PlanAction.CREATE)
                for step in writable
                if step.manifest is not None
            ]
            self._remote.write_all(
                changes, lambda change, result: self._set_outcome(self._steps[change.manifest.ref], result)
            )

    def _delete(self, steps: Sequence[PlanStep]) -> None:
        for kind in reversed(KINDS):
            of_kind = [(step.ref, step.version) for step in steps if step.ref.kind is kind]
            self._remote.delete_all(of_kind, lambda one, result: self._set_outcome(self._steps[one[0]], result))

    def _find_failed_requirement(self, step: PlanStep) -> ObjectRef | None:
        """What the step needs and could not be made."""
        required = [] if step.ref.kind is TENANT else [ObjectRef(TENANT, step.ref.tenant)]
        if step.ref.kind is MONITOR and step.manifest is not None:
            required.append(ObjectRef(CLUSTER, step.ref.tenant, str(step.manifest.spec["cluster"])))
        for ref in required:
            outcome = self.outcomes.get(ref)
            # One that is there and only could not be changed does for what needs it.
            if outcome is not None and outcome.error is not None and outcome.step.action is PlanAction.CREATE:
                return ref
        return None

    def _set_outcome(self, step: PlanStep, result: ObjectWriteResult | LagscaleError | None) -> None:
        self._advance()
        if isinstance(result, NotFound) and step.action is PlanAction.DELETE:
            # Somebody else was faster; it is gone, as it shall be.
            self.outcomes[step.ref] = PlanStepResult(replace(step, action=PlanAction.SAME))
        elif isinstance(result, LagscaleError):
            self.outcomes[step.ref] = PlanStepResult(step, result)
        elif result is None:
            self.outcomes[step.ref] = PlanStepResult(step)
        else:
            self.outcomes[step.ref] = PlanStepResult(_describe_result(step, result))


def _describe_result(step: PlanStep, result: ObjectWriteResult) -> PlanStep:
    """The step as it really was."""
    warnings = tuple(dict.fromkeys((*step.warnings, *result.warnings)))
    if result.created:
        action = PlanAction.CREATE
    elif result.same:
        # Only the API can tell whether a secret is the same.
        action = PlanAction.SAME
    else:
        action = PlanAction.CHANGE
    return replace(step, action=action, warnings=warnings)
