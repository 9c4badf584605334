"""Plans and outcomes as lines for people and as JSON for scripts; the error with which a command ends."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from lagscale.errors import Fault, InvalidInput, LagscaleError
from services.cli.concurrency import NotTried
from services.cli.exits import Differs, PartlyDone, exit_code
from services.cli.objects.apply import Outcome
from services.cli.objects.plan import HIDDEN, Action, Step

_MARKS = {Action.CREATE: ("+", "green"), Action.CHANGE: ("~", "yellow"), Action.DELETE: ("-", "red")}
_DONE = {Action.CREATE: "created", Action.CHANGE: "changed", Action.DELETE: "deleted"}


def show_plan(steps: Sequence[Step], console: Console) -> None:
    """What would be done, with each field that differs, and how many are the same."""
    for step in steps:
        if step.action is not Action.SAME:
            mark, colour = _MARKS[step.action]
            console.print(Text(f"{mark} {step.ref}", colour))
            for one in step.differences:
                console.print(Text(f"    {one.name}: {_change(step.action, one.before, one.after)}"), soft_wrap=True)
    counts = Counter(step.action for step in steps)
    if set(counts) <= {Action.SAME}:
        console.print(f"No change: {_objects(counts[Action.SAME])} so already.")
        return
    told = [
        f"{counts[action]} to {action}" for action in (Action.CREATE, Action.CHANGE, Action.DELETE) if counts[action]
    ]
    console.print(", ".join([*told, f"{counts[Action.SAME]} the same"]) + ".")


def show_outcomes(outcomes: Sequence[Outcome], console: Console) -> None:
    """What was done; what was not is told by the error."""
    for one in outcomes:
        if one.error is None and one.step.action is not Action.SAME:
            console.print(Text(f"{_DONE[one.step.action]} {one.step.ref}", _MARKS[one.step.action][1]))
    counts = Counter(one.step.action for one in outcomes if one.error is None)
    failed = sum(one.error is not None for one in outcomes)
    if set(counts) <= {Action.SAME} and not failed:
        console.print(f"No change: {_objects(counts[Action.SAME])} so already.")
        return
    told = [f"{counts[action]} {word}" for action, word in _DONE.items() if counts[action]]
    told.append(f"{counts[Action.SAME]} the same")
    console.print(", ".join([*told, *([f"{failed} not done"] if failed else [])]) + ".")


def warnings_of(steps: Sequence[Step]) -> Iterator[str]:
    """A line for each warning."""
    for step in steps:
        yield from (f"{_place(step)}: warning: {text}" for text in step.warnings)


def as_json(steps: Sequence[Step], errors: Sequence[LagscaleError | None]) -> str:
    """Steps for scripts.

    Args:
        steps: of a plan, or as they were done.
        errors: why a step was or would be refused; as many.
    """
    rows = [
        {
            "action": str(step.action),
            "kind": step.ref.kind.name,
            "tenant": step.ref.tenant,
            "name": step.ref.name or step.ref.tenant,
            "place": None if step.manifest is None else step.manifest.document.place(),
            "differences": [{"field": one.name, "before": one.before, "after": one.after} for one in step.differences],
            "warnings": list(step.warnings),
            "error": None if error is None else error.message,
        }
        for step, error in zip(steps, errors, strict=True)
    ]
    return json.dumps({"steps": rows}, indent=2)


def ended(outcomes: Sequence[Outcome]) -> LagscaleError | None:
    """The error of a run in which something was not done; None when all is so."""
    failed = [(one.step, one.error) for one in outcomes if one.error is not None]
    return _gathered(failed, done=any(one.error is None and one.step.action is not Action.SAME for one in outcomes))


def refused(steps: Sequence[Step]) -> LagscaleError | None:
    """The error of a plan of which the API would not do a part; None when it would do all."""
    return _gathered([(step, step.refused) for step in steps if step.refused is not None], done=False)


def differs(steps: Sequence[Step]) -> LagscaleError | None:
    """The error that tells scripts of differences; None without any."""
    return Differs(faults=[]) if any(step.action is not Action.SAME for step in steps) else None


def _gathered(failed: Sequence[tuple[Step, LagscaleError]], *, done: bool) -> LagscaleError | None:
    if not failed:
        return None
    faults = [fault for step, error in failed for fault in _faults(step, error)]
    reasons = [error for _, error in failed if not isinstance(error, NotTried)]
    if done or len({exit_code(error) for error in reasons}) != 1:
        return PartlyDone(faults=faults)
    # Nothing was done, for one reason: that reason's code says more.
    if isinstance(reasons[0], InvalidInput):
        return InvalidInput(faults)
    return type(reasons[0])("; ".join(map(str, faults)), faults=faults)


def _faults(step: Step, error: LagscaleError) -> Iterator[Fault]:
    if isinstance(error, InvalidInput) and step.manifest is not None:
        yield from (step.manifest.fault_of_field(fault.field, fault.text) for fault in error.faults)
    else:
        yield Fault(_place(step), error.message)


def _place(step: Step) -> str:
    return str(step.ref) if step.manifest is None else f"{step.manifest.document.place()}: {step.ref}"


def _change(action: Action, before: Any, after: Any) -> str:
    if after == HIDDEN or action is Action.CREATE:
        return _value(after)
    return f"{_value(before)} -> {_value(after)}"


def _value(value: Any) -> str:
    if value is None:
        return "not given"
    return value if isinstance(value, str) and value == HIDDEN else json.dumps(value, ensure_ascii=False)


def _objects(number: int) -> str:
    return "1 object is" if number == 1 else f"{number:,} objects are"
