"""Carries out a plan: step by step in the order in which objects need each other, whatever becomes of the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lagscale.errors import Conflict, LagscaleError, NotFound, QuotaExceeded
from services.cli.concurrency import NotTried
from services.cli.objects.kinds import CLUSTER, KINDS, MONITOR, TENANT, Ref
from services.cli.objects.plan import Action, Step
from services.cli.objects.remote import Remote
from services.cli.objects.writes import Change, Written


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a step.

    Attributes:
        step: its action is what was really done; SAME for what turned out to be so already.
        error: why it was not done.
    """

    step: Step
    error: LagscaleError | None = None


class Applying:
    """Carries out a plan. `outcomes` grows as results come in, so that an interrupted run can still tell them."""

    def __init__(self, remote: Remote, advance: Callable[[], None]) -> None:
        """Prepare; `advance` is called after each step."""
        self._remote = remote
        self._advance = advance
        self._steps: dict[Ref, Step] = {}
        self.outcomes: dict[Ref, Outcome] = {}

    def run(self, steps: Sequence[Step]) -> None:
        """Write, then delete; then once more what was in the way of what is deleted now.

        New objects come before the old ones go, so that nothing is unregistered in between. Where that cannot be (a
        quota is full, a binding excludes the new one), the second attempt makes it so.
        """
        self._steps = {step.ref: step for step in steps}
        self.outcomes |= {step.ref: Outcome(step) for step in steps if step.action is Action.SAME}
        writing = [step for step in steps if step.action in {Action.CREATE, Action.CHANGE}]
        self._write(writing)
        deleting = [step for step in steps if step.action is Action.DELETE]
        self._delete(deleting)
        if any(self.outcomes[step.ref].error is None for step in deleting):
            in_the_way = (Conflict, QuotaExceeded, NotTried)
            self._write([step for step in writing if isinstance(self.outcomes[step.ref].error, in_the_way)])

    def _write(self, steps: Sequence[Step]) -> None:
        for kind in KINDS:
            of_kind = [step for step in steps if step.ref.kind is kind and step.manifest is not None]
            possible = []
            for step in of_kind:
                lacking = self._lacking(step)
                if lacking is None:
                    possible.append(step)
                else:
                    self._tell(step, NotTried(f"was not tried: it needs {lacking}, which was refused"))
            changes = [
                Change(step.manifest, step.seen, new=step.action is Action.CREATE)
                for step in possible
                if step.manifest is not None
            ]
            self._remote.written(changes, lambda change, result: self._tell(self._steps[change.manifest.ref], result))

    def _delete(self, steps: Sequence[Step]) -> None:
        for kind in reversed(KINDS):
            of_kind = [(step.ref, step.seen) for step in steps if step.ref.kind is kind]
            self._remote.deleted(of_kind, lambda one, result: self._tell(self._steps[one[0]], result))

    def _lacking(self, step: Step) -> Ref | None:
        """What the step needs and could not be made."""
        needed = [] if step.ref.kind is TENANT else [Ref(TENANT, step.ref.tenant)]
        if step.ref.kind is MONITOR and step.manifest is not None:
            needed.append(Ref(CLUSTER, step.ref.tenant, str(step.manifest.spec["cluster"])))
        for ref in needed:
            outcome = self.outcomes.get(ref)
            # One that is there and only could not be changed does for what needs it.
            if outcome is not None and outcome.error is not None and outcome.step.action is Action.CREATE:
                return ref
        return None

    def _tell(self, step: Step, result: Written | LagscaleError | None) -> None:
        self._advance()
        if isinstance(result, NotFound) and step.action is Action.DELETE:
            # Somebody else was faster; it is gone, as it shall be.
            self.outcomes[step.ref] = Outcome(replace(step, action=Action.SAME))
        elif isinstance(result, LagscaleError):
            self.outcomes[step.ref] = Outcome(step, result)
        elif result is None:
            self.outcomes[step.ref] = Outcome(step)
        else:
            self.outcomes[step.ref] = Outcome(_done(step, result))


def _done(step: Step, result: Written) -> Step:
    """The step as it really was."""
    warnings = tuple(dict.fromkeys((*step.warnings, *result.warnings)))
    if result.created:
        action = Action.CREATE
    elif result.same:
        # Only the API can tell whether a secret is the same.
        action = Action.SAME
    else:
        action = Action.CHANGE
    return replace(step, action=action, warnings=warnings)
