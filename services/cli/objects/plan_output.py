"""Plans and results of `apply`, `diff` and `delete` as text and as JSON, and the error of the command."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from lagscale.errors import FieldError, InvalidInput, LagscaleError
from services.cli.exits import DifferencesFound, PartiallyApplied, find_exit_code
from services.cli.objects.execute import PlanStepResult
from services.cli.objects.plan import HIDDEN, PlanAction, PlanStep
from services.cli.objects.requests import Skipped

_MARKS = {PlanAction.CREATE: ("+", "green"), PlanAction.CHANGE: ("~", "yellow"), PlanAction.DELETE: ("-", "red")}
_ACTION_RESULTS = {PlanAction.CREATE: "created", PlanAction.CHANGE: "changed", PlanAction.DELETE: "deleted"}


def print_plan(steps: Sequence[PlanStep], console: Console) -> None:
    """Print the steps with their differences, and the number of unchanged objects."""
    for step in steps:
        if step.action is not PlanAction.SAME:
            mark, color = _MARKS[step.action]
            console.print(Text(f"{mark} {step.ref}", color))
            for one in step.differences:
                console.print(
                    Text(f"    {one.name}: {_format_change(step.action, one.before, one.after)}"), soft_wrap=True
                )
    counts = Counter(step.action for step in steps)
    if set(counts) <= {PlanAction.SAME}:
        console.print(f"No changes: {_format_count(counts[PlanAction.SAME])} up to date.")
        return
    counts_text = [
        f"{counts[action]} to {action}"
        for action in (PlanAction.CREATE, PlanAction.CHANGE, PlanAction.DELETE)
        if counts[action]
    ]
    console.print(", ".join([*counts_text, f"{counts[PlanAction.SAME]} unchanged"]) + ".")


def print_results(results: Sequence[PlanStepResult], console: Console) -> None:
    """Print the steps that succeeded; failed ones are in the error of the command."""
    for one in results:
        if one.error is None and one.step.action is not PlanAction.SAME:
            console.print(Text(f"{_ACTION_RESULTS[one.step.action]} {one.step.ref}", _MARKS[one.step.action][1]))
    counts = Counter(one.step.action for one in results if one.error is None)
    failed = sum(one.error is not None for one in results)
    if set(counts) <= {PlanAction.SAME} and not failed:
        console.print(f"No changes: {_format_count(counts[PlanAction.SAME])} up to date.")
        return
    counts_text = [f"{counts[action]} {word}" for action, word in _ACTION_RESULTS.items() if counts[action]]
    counts_text.append(f"{counts[PlanAction.SAME]} unchanged")
    console.print(", ".join([*counts_text, *([f"{failed} failed"] if failed else [])]) + ".")


def list_warnings(steps: Sequence[PlanStep]) -> Iterator[str]:
    """One line per warning."""
    for step in steps:
        yield from (f"{_format_location(step)}: warning: {text}" for text in step.warnings)


def as_json(steps: Sequence[PlanStep], errors: Sequence[LagscaleError | None]) -> str:
    """Steps as JSON for scripts.

    Args:
        steps: of a plan, or with the actions that were taken.
        errors: of each step, or None.
    """
    rows = [
        {
            "action": str(step.action),
            "kind": step.ref.kind.name,
            "tenant": step.ref.tenant,
            "name": step.ref.name or step.ref.tenant,
            "location": None if step.manifest is None else step.manifest.document.locate(),
            "differences": [{"field": one.name, "before": one.before, "after": one.after} for one in step.differences],
            "warnings": list(step.warnings),
            "error": None if error is None else error.message,
        }
        for step, error in zip(steps, errors, strict=True)
    ]
    return json.dumps({"steps": rows}, indent=2)


def find_run_error(results: Sequence[PlanStepResult]) -> LagscaleError | None:
    """The error of a run with failed steps; None without any."""
    failed = [(one.step, one.error) for one in results if one.error is not None]
    return _combine_errors(
        failed, done=any(one.error is None and one.step.action is not PlanAction.SAME for one in results)
    )


def find_rejection_error(steps: Sequence[PlanStep]) -> LagscaleError | None:
    """The error of a plan with steps that the API would reject; None without any."""
    return _combine_errors([(step, step.rejection) for step in steps if step.rejection is not None], done=False)


def find_difference_error(steps: Sequence[PlanStep]) -> LagscaleError | None:
    """The error that reports differences to scripts; None without any."""
    return DifferencesFound(field_errors=[]) if any(step.action is not PlanAction.SAME for step in steps) else None


def _combine_errors(failed: Sequence[tuple[PlanStep, LagscaleError]], *, done: bool) -> LagscaleError | None:
    if not failed:
        return None
    field_errors = [field_error for step, error in failed for field_error in _list_errors(step, error)]
    reasons = [error for _, error in failed if not isinstance(error, Skipped)]
    if done or len({find_exit_code(error) for error in reasons}) != 1:
        return PartiallyApplied(field_errors=field_errors)
    # Nothing was applied, for a single reason, so its exit code says more.
    if isinstance(reasons[0], InvalidInput):
        return InvalidInput(field_errors)
    return type(reasons[0])("; ".join(map(str, field_errors)), field_errors=field_errors)


def _list_errors(step: PlanStep, error: LagscaleError) -> Iterator[FieldError]:
    if isinstance(error, InvalidInput) and step.manifest is not None:
        yield from (
            step.manifest.build_field_error(field_error.field, field_error.text) for field_error in error.field_errors
        )
    else:
        yield FieldError(_format_location(step), error.message)


def _format_location(step: PlanStep) -> str:
    return str(step.ref) if step.manifest is None else f"{step.manifest.document.locate()}: {step.ref}"


def _format_change(action: PlanAction, before: Any, after: Any) -> str:
    if after == HIDDEN or action is PlanAction.CREATE:
        return _format_value(after)
    return f"{_format_value(before)} -> {_format_value(after)}"


def _format_value(value: Any) -> str:
    if value is None:
        return "unset"
    return value if isinstance(value, str) and value == HIDDEN else json.dumps(value, ensure_ascii=False)


def _format_count(number: int) -> str:
    return "1 object" if number == 1 else f"{number:,} objects"
