"""`lagscale apply` and `lagscale diff`: apply objects from files, or compare them with the current ones.

`lagscale delete` prints and executes its steps as these two do.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.text import Text

from lagscale.errors import FieldError, InvalidInput, LagscaleError
from services.cli.client import open_api
from services.cli.exits import DifferencesFound, PartiallyApplied, find_exit_code
from services.cli.objects.documents import read_documents
from services.cli.objects.manifests import parse_manifests
from services.cli.objects.plan import HIDDEN, PlanExecutor, build_plan
from services.cli.objects.requests import ObjectClient, PlanAction, PlanStep, Skipped
from services.cli.output import print_json, show_progress
from services.cli.settings import environment

Files = Annotated[
    list[str],
    typer.Option(
        "--file",
        "-f",
        metavar="FILE|DIR|-",
        help="YAML or JSON file, directory (recursive), or - for stdin; repeatable.",
    ),
]
Prune = Annotated[
    bool,
    typer.Option(
        "--prune", help="Delete objects that the files do not declare, limited to the kinds and tenants they contain."
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Delete without confirmation.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


#: Action of a step -> its mark and color in a plan, and its word in results.
_ACTIONS: Final = {
    PlanAction.CREATE: ("+", "green", "created"),
    PlanAction.CHANGE: ("~", "yellow", "changed"),
    PlanAction.DELETE: ("-", "red", "deleted"),
}


def apply_files(
    file: Files,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan without applying it.")] = False,
    prune: Prune = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Create or update tenants, clusters, monitors and bindings from files; exit 10 if only a part was applied."""
    with open_api() as client:
        objects_api = ObjectClient(client)
        steps = _build_plan(objects_api, file, prune=prune)
        if dry_run:
            print_plan(steps, as_json=as_json)
            _raise_errors(steps, executed=False)
            return
        confirm([step for step in steps if step.action is PlanAction.DELETE], yes=yes)
        execute_plan(objects_api, steps, as_json=as_json)


def diff_files(file: Files, prune: Prune = False, as_json: AsJson = False) -> None:
    """Compare files with the current objects: exit 0 if they are equal, 1 if they differ, greater than 1 on errors."""
    try:
        with open_api() as client:
            steps = _build_plan(ObjectClient(client), file, prune=prune)
        print_plan(steps, as_json=as_json)
        _raise_errors(steps, executed=False)
    except LagscaleError as error:
        if find_exit_code(error) > 1:
            raise
        # 1 would read as a difference.
        raise PartiallyApplied(error.message, **error.facts) from error
    if any(step.action is not PlanAction.SAME for step in steps):
        raise DifferencesFound(field_errors=[])


def _build_plan(objects_api: ObjectClient, sources: Sequence[str], *, prune: bool) -> list[PlanStep]:
    """The steps that apply the files.

    Warnings are printed to standard error, so that scripts can parse the output.

    Raises:
        InvalidInput: with the errors of all files.
        LagscaleError: the API is not reachable, or rejects the key.
    """
    field_errors: list[FieldError] = []
    documents = read_documents(sources, field_errors)
    declared = parse_manifests(documents, objects_api.schemas, environment(), field_errors)
    if not documents and not field_errors:
        field_errors.append(FieldError(", ".join(sources), "contains no objects"))
    with show_progress("comparing", len(declared.manifests)) as advance:
        steps = build_plan(objects_api, declared, advance, prune=prune, field_errors=field_errors)
    if field_errors:
        raise InvalidInput(field_errors)
    for step in steps:
        for text in step.warnings:
            typer.echo(f"lagscale: {_format_location(step)}: warning: {text}", err=True)
    return steps


def execute_plan(objects_api: ObjectClient, steps: Sequence[PlanStep], *, as_json: bool) -> None:
    """Execute the steps and print their results, also of an interrupted run.

    Raises:
        LagscaleError: a step failed.
    """
    with show_progress("applying", sum(step.action is not PlanAction.SAME for step in steps)) as advance:
        executor = PlanExecutor(objects_api, advance)
        try:
            executor.run(steps)
        except KeyboardInterrupt:
            _print_results(executor, steps, as_json=as_json)
            raise
    _raise_errors(_print_results(executor, steps, as_json=as_json), executed=True)


def confirm(deleting: Sequence[PlanStep], *, yes: bool) -> None:
    """Ask for confirmation before objects are deleted.

    Raises:
        InvalidInput: stdin is not a terminal and --yes is not given.
        Abort: the deletion is not confirmed.
    """
    if not deleting or yes:
        return
    if not sys.stdin.isatty():
        names = ", ".join(str(step.ref) for step in deleting[:3]) + (" and more" if len(deleting) > 3 else "")
        raise InvalidInput.of("--yes", f"required to delete {len(deleting)} object(s): {names}")
    _print_steps(deleting, Console(stderr=True))
    typer.confirm("Delete them?", abort=True, err=True)


def print_plan(steps: Sequence[PlanStep], *, as_json: bool) -> None:
    """Print the steps with their differences, and the number of unchanged objects."""
    if as_json:
        _print_json(steps)
    else:
        _print_steps(steps, Console())


def _print_steps(steps: Sequence[PlanStep], console: Console) -> None:
    for step in steps:
        if step.action is not PlanAction.SAME:
            mark, color, _ = _ACTIONS[step.action]
            console.print(Text(f"{mark} {step.ref}", color))
            for one in step.differences:
                after = _format_value(one.after)
                known = one.after == HIDDEN or step.action is PlanAction.CREATE
                change = after if known else f"{_format_value(one.before)} -> {after}"
                console.print(Text(f"    {one.name}: {change}"), soft_wrap=True)
    counts = Counter(step.action for step in steps)
    _print_counts(counts, [f"{counts[action]} to {action}" for action in _ACTIONS if counts[action]], [], console)


def _print_results(executor: PlanExecutor, steps: Sequence[PlanStep], *, as_json: bool) -> list[PlanStep]:
    """Print the steps that succeeded; failed ones are in the error of the command."""
    results = [executor.results[step.ref] for step in steps if step.ref in executor.results]
    if as_json:
        _print_json(results)
        return results
    planned = {(step.ref, text) for step in steps for text in step.warnings}
    for one in results:
        for text in one.warnings:
            if (one.ref, text) not in planned:
                typer.echo(f"lagscale: {_format_location(one)}: warning: {text}", err=True)
    console = Console()
    done = [one for one in results if one.error is None]
    for one in done:
        if one.action is not PlanAction.SAME:
            _, color, word = _ACTIONS[one.action]
            console.print(Text(f"{word} {one.ref}", color))
    counts = Counter(one.action for one in done)
    failed = [f"{len(results) - len(done)} failed"] if len(results) > len(done) else []
    words = [f"{counts[action]} {word}" for action, (_, _, word) in _ACTIONS.items() if counts[action]]
    _print_counts(counts, words, failed, console)
    return results


def _print_counts(counts: Counter[PlanAction], changed: list[str], failed: list[str], console: Console) -> None:
    same = counts[PlanAction.SAME]
    if changed or failed:
        console.print(", ".join([*changed, f"{same} unchanged", *failed]) + ".")
    else:
        console.print(f"No changes: {'1 object' if same == 1 else f'{same:,} objects'} up to date.")


def _print_json(steps: Sequence[PlanStep]) -> None:
    rows = [
        {
            "action": str(step.action),
            "kind": step.ref.kind.name,
            "tenant": step.ref.tenant,
            "name": step.ref.name or step.ref.tenant,
            "location": None if step.manifest is None else step.manifest.document.locate(),
            "differences": [{"field": one.name, "before": one.before, "after": one.after} for one in step.differences],
            "warnings": list(step.warnings),
            "error": None if step.error is None else step.error.message,
        }
        for step in steps
    ]
    print_json({"steps": rows})


def _raise_errors(steps: Sequence[PlanStep], *, executed: bool) -> None:
    """Raise one error for all failed steps."""
    failed = [(step, step.error) for step in steps if step.error is not None]
    if not failed:
        return
    done = executed and any(step.error is None and step.action is not PlanAction.SAME for step in steps)
    field_errors = [field_error for step, error in failed for field_error in _list_errors(step, error)]
    reasons = [error for _, error in failed if not isinstance(error, Skipped)]
    if done or len({find_exit_code(error) for error in reasons}) != 1:
        raise PartiallyApplied(field_errors=field_errors)
    # Nothing was applied, for a single reason, so its exit code says more.
    if isinstance(reasons[0], InvalidInput):
        raise InvalidInput(field_errors)
    raise type(reasons[0])("; ".join(map(str, field_errors)), field_errors=field_errors)


def _list_errors(step: PlanStep, error: LagscaleError) -> Iterator[FieldError]:
    if isinstance(error, InvalidInput) and step.manifest is not None:
        yield from (step.manifest.build_field_error(one.field, one.text) for one in error.field_errors)
    else:
        yield FieldError(_format_location(step), error.message)


def _format_location(step: PlanStep) -> str:
    return str(step.ref) if step.manifest is None else f"{step.manifest.document.locate()}: {step.ref}"


def _format_value(value: Any) -> str:
    if value is None:
        return "unset"
    return value if isinstance(value, str) and value == HIDDEN else json.dumps(value, ensure_ascii=False)
