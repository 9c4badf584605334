"""`lagscale apply` and `lagscale diff`: apply objects from files, or compare them with the current ones."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console

from lagscale.errors import FieldError, InvalidInput, LagscaleError
from lagscale.settings import load
from services.cli.client import ApiClient
from services.cli.exits import PartiallyApplied, find_exit_code
from services.cli.objects import plan_output
from services.cli.objects.documents import read_documents
from services.cli.objects.execute import PlanExecutor, PlanStepResult
from services.cli.objects.manifests import parse_manifests
from services.cli.objects.plan import PlanAction, PlanBuilder, PlanStep
from services.cli.objects.requests import ObjectClient
from services.cli.output import show_progress
from services.cli.settings import CliSettings, environment

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


def apply_files(
    file: Files,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan without applying it.")] = False,
    prune: Prune = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Create or update tenants, clusters, monitors and bindings from files; exit 10 if only a part was applied."""
    with ApiClient(load(CliSettings)) as client:
        objects_api = ObjectClient(client)
        steps = build_plan(objects_api, file, prune=prune)
        print_warnings(steps)
        if dry_run:
            _print_plan(steps, as_json=as_json)
            raise_if(plan_output.find_rejection_error(steps))
            return
        deleting = [step for step in steps if step.action is PlanAction.DELETE]
        confirm(deleting, yes=yes)
        execute_plan(objects_api, steps, as_json=as_json)


def diff_files(file: Files, prune: Prune = False, as_json: AsJson = False) -> None:
    """Compare files with the current objects: exit 0 if they are equal, 1 if they differ, greater than 1 on errors."""
    try:
        with ApiClient(load(CliSettings)) as client:
            steps = build_plan(ObjectClient(client), file, prune=prune)
        print_warnings(steps)
        _print_plan(steps, as_json=as_json)
        raise_if(plan_output.find_rejection_error(steps))
    except LagscaleError as error:
        if find_exit_code(error) > 1:
            raise
        # 1 would read as a difference.
        raise PartiallyApplied(error.message, **error.facts) from error
    raise_if(plan_output.find_difference_error(steps))


def build_plan(objects_api: ObjectClient, sources: Sequence[str], *, prune: bool) -> list[PlanStep]:
    """The steps that apply the files.

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
        steps = PlanBuilder(objects_api, advance).build(declared, prune=prune, field_errors=field_errors)
    if field_errors:
        raise InvalidInput(field_errors)
    return steps


def execute_plan(objects_api: ObjectClient, steps: Sequence[PlanStep], *, as_json: bool) -> None:
    """Execute the steps and print their results, also of an interrupted run.

    Raises:
        LagscaleError: a step failed.
    """
    todo = [step for step in steps if step.action is not PlanAction.SAME]
    with show_progress("applying", len(todo)) as advance:
        executor = PlanExecutor(objects_api, advance)
        try:
            executor.run(steps)
        except KeyboardInterrupt:
            _print_results(executor, steps, as_json=as_json)
            raise
    raise_if(plan_output.find_run_error(_print_results(executor, steps, as_json=as_json)))


def _print_results(executor: PlanExecutor, steps: Sequence[PlanStep], *, as_json: bool) -> list[PlanStepResult]:
    results = [executor.results[step.ref] for step in steps if step.ref in executor.results]
    if as_json:
        typer.echo(plan_output.as_json([one.step for one in results], [one.error for one in results]))
    else:
        plan_output.print_results(results, Console())
    return results


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
        raise InvalidInput([FieldError("--yes", f"required to delete {len(deleting)} object(s): {names}")])
    plan_output.print_plan(deleting, Console(stderr=True))
    typer.confirm("Delete them?", abort=True, err=True)


def print_warnings(steps: Sequence[PlanStep]) -> None:
    """Print warnings to standard error, so that scripts can parse the output."""
    for line in plan_output.list_warnings(steps):
        typer.echo(f"lagscale: {line}", err=True)


def raise_if(error: LagscaleError | None) -> None:
    """Raise the error if there is one."""
    if error is not None:
        raise error


def _print_plan(steps: Sequence[PlanStep], *, as_json: bool) -> None:
    if as_json:
        typer.echo(plan_output.as_json(steps, [step.rejection for step in steps]))
    else:
        plan_output.print_plan(steps, Console())
