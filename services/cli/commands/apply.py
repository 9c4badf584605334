"""`lagscale apply` and `lagscale diff`: objects in files are made so, or compared with what is there."""

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
from services.cli.progress import show_progress
from services.cli.settings import CliSettings, environment

Files = Annotated[
    list[str],
    typer.Option("--file", "-f", metavar="FILE|DIR|-", help="YAML or JSON; a directory with all in it; - is stdin."),
]
Prune = Annotated[
    bool,
    typer.Option("--prune", help="Delete what the files do not declare, of the kinds and tenants that they name."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking.")]
AsJson = Annotated[bool, typer.Option("--json", help="Steps as JSON, for scripts.")]


def apply(
    file: Files,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be done.")] = False,
    prune: Prune = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Make tenants, clusters, monitors and bindings as files declare them; exit 10 if only a part could be done."""
    with ApiClient(load(CliSettings)) as client:
        remote = ObjectClient(client)
        steps = build_plan(remote, file, prune=prune)
        print_warnings(steps)
        if dry_run:
            _print_plan(steps, as_json=as_json)
            raise_if(plan_output.find_rejection_error(steps))
            return
        deleting = [step for step in steps if step.action is PlanAction.DELETE]
        confirm(deleting, yes=yes)
        execute_plan(remote, steps, as_json=as_json)


def diff(file: Files, prune: Prune = False, as_json: AsJson = False) -> None:
    """Compare files with what is there: exit 0 if it is the same, 1 if it differs, more if that cannot be told."""
    try:
        with ApiClient(load(CliSettings)) as client:
            steps = build_plan(ObjectClient(client), file, prune=prune)
        print_warnings(steps)
        _print_plan(steps, as_json=as_json)
        raise_if(plan_output.find_rejection_error(steps))
    except LagscaleError as wrong:
        if find_exit_code(wrong) > 1:
            raise
        # 1 would read as a difference.
        raise PartiallyApplied(wrong.message, **wrong.facts) from wrong
    raise_if(plan_output.find_difference_error(steps))


def build_plan(remote: ObjectClient, sources: Sequence[str], *, prune: bool) -> list[PlanStep]:
    """The steps that files ask for.

    Raises:
        InvalidInput: with every fault of every file.
        LagscaleError: the API does not answer, or refuses the key.
    """
    field_errors: list[FieldError] = []
    documents = read_documents(sources, field_errors)
    objects = parse_manifests(documents, remote.schemas, environment(), field_errors)
    if not documents and not field_errors:
        field_errors.append(FieldError(", ".join(sources), "declares nothing"))
    with show_progress("comparing", len(objects.manifests)) as advance:
        steps = PlanBuilder(remote, advance).build(objects, prune=prune, field_errors=field_errors)
    if field_errors:
        raise InvalidInput(field_errors)
    return steps


def execute_plan(remote: ObjectClient, steps: Sequence[PlanStep], *, as_json: bool) -> None:
    """Do the steps and tell what became of them, also when the run is interrupted.

    Raises:
        LagscaleError: why something was not done.
    """
    todo = [step for step in steps if step.action is not PlanAction.SAME]
    with show_progress("applying", len(todo)) as advance:
        executor = PlanExecutor(remote, advance)
        try:
            executor.run(steps)
        except KeyboardInterrupt:
            _print_outcomes(executor, steps, as_json=as_json)
            raise
    raise_if(plan_output.find_run_error(_print_outcomes(executor, steps, as_json=as_json)))


def _print_outcomes(executor: PlanExecutor, steps: Sequence[PlanStep], *, as_json: bool) -> list[PlanStepResult]:
    outcomes = [executor.outcomes[step.ref] for step in steps if step.ref in executor.outcomes]
    if as_json:
        typer.echo(plan_output.as_json([one.step for one in outcomes], [one.error for one in outcomes]))
    else:
        plan_output.print_outcomes(outcomes, Console())
    return outcomes


def confirm(deleting: Sequence[PlanStep], *, yes: bool) -> None:
    """Ask before anything is deleted.

    Raises:
        InvalidInput: there is nobody to ask, and no --yes.
        Abort: the answer is no.
    """
    if not deleting or yes:
        return
    if not sys.stdin.isatty():
        names = ", ".join(str(step.ref) for step in deleting[:3]) + (" and more" if len(deleting) > 3 else "")
        raise InvalidInput([FieldError("--yes", f"must be given to delete {len(deleting)} object(s): {names}")])
    plan_output.print_plan(deleting, Console(stderr=True))
    typer.confirm("Delete them?", abort=True, err=True)


def print_warnings(steps: Sequence[PlanStep]) -> None:
    """Warnings go where errors go, so that output can be read by scripts."""
    for line in plan_output.list_warnings(steps):
        typer.echo(f"lagscale: {line}", err=True)


def raise_if(error: LagscaleError | None) -> None:
    """Raise it if there is one."""
    if error is not None:
        raise error


def _print_plan(steps: Sequence[PlanStep], *, as_json: bool) -> None:
    if as_json:
        typer.echo(plan_output.as_json(steps, [step.rejection for step in steps]))
    else:
        plan_output.print_plan(steps, Console())
