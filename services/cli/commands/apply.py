"""`lagscale apply` and `lagscale diff`: objects in files are made so, or compared with what is there."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console

from lagscale.errors import Fault, InvalidInput, LagscaleError
from lagscale.settings import load
from services.cli import output
from services.cli.client import Client
from services.cli.exits import PartlyDone, exit_code
from services.cli.objects.apply import Applying, Outcome
from services.cli.objects.documents import read
from services.cli.objects.manifests import declared
from services.cli.objects.plan import Action, Planner, Step
from services.cli.objects.remote import Remote
from services.cli.progress import progress
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
    with Client(load(CliSettings)) as client:
        remote = Remote(client)
        steps = planned(remote, file, prune=prune)
        tell_warnings(steps)
        if dry_run:
            _show(steps, as_json=as_json)
            end(output.refused(steps))
            return
        deleting = [step for step in steps if step.action is Action.DELETE]
        confirm(deleting, yes=yes)
        carry_out(remote, steps, as_json=as_json)


def diff(file: Files, prune: Prune = False, as_json: AsJson = False) -> None:
    """Compare files with what is there: exit 0 if it is the same, 1 if it differs, more if that cannot be told."""
    try:
        with Client(load(CliSettings)) as client:
            steps = planned(Remote(client), file, prune=prune)
        tell_warnings(steps)
        _show(steps, as_json=as_json)
        end(output.refused(steps))
    except LagscaleError as wrong:
        if exit_code(wrong) > 1:
            raise
        # 1 would read as a difference.
        raise PartlyDone(wrong.message, **wrong.facts) from wrong
    end(output.differs(steps))


def planned(remote: Remote, sources: Sequence[str], *, prune: bool) -> list[Step]:
    """The steps that files ask for.

    Raises:
        InvalidInput: with every fault of every file.
        LagscaleError: the API does not answer, or refuses the key.
    """
    faults: list[Fault] = []
    documents = read(sources, faults)
    objects = declared(documents, remote.schemas, environment(), faults)
    if not documents and not faults:
        faults.append(Fault(", ".join(sources), "declares nothing"))
    with progress("comparing", len(objects.manifests)) as advance:
        steps = Planner(remote, advance).plan(objects, prune=prune, faults=faults)
    if faults:
        raise InvalidInput(faults)
    return steps


def carry_out(remote: Remote, steps: Sequence[Step], *, as_json: bool) -> None:
    """Do the steps and tell what became of them, also when the run is interrupted.

    Raises:
        LagscaleError: why something was not done.
    """
    todo = [step for step in steps if step.action is not Action.SAME]
    with progress("applying", len(todo)) as advance:
        applying = Applying(remote, advance)
        try:
            applying.run(steps)
        except KeyboardInterrupt:
            _show_outcomes(applying, steps, as_json=as_json)
            raise
    end(output.ended(_show_outcomes(applying, steps, as_json=as_json)))


def _show_outcomes(applying: Applying, steps: Sequence[Step], *, as_json: bool) -> list[Outcome]:
    outcomes = [applying.outcomes[step.ref] for step in steps if step.ref in applying.outcomes]
    if as_json:
        typer.echo(output.as_json([one.step for one in outcomes], [one.error for one in outcomes]))
    else:
        output.show_outcomes(outcomes, Console())
    return outcomes


def confirm(deleting: Sequence[Step], *, yes: bool) -> None:
    """Ask before anything is deleted.

    Raises:
        InvalidInput: there is nobody to ask, and no --yes.
        Abort: the answer is no.
    """
    if not deleting or yes:
        return
    if not sys.stdin.isatty():
        named = ", ".join(str(step.ref) for step in deleting[:3]) + (" and more" if len(deleting) > 3 else "")
        raise InvalidInput([Fault("--yes", f"must be given to delete {len(deleting)} object(s): {named}")])
    output.show_plan(deleting, Console(stderr=True))
    typer.confirm("Delete them?", abort=True, err=True)


def tell_warnings(steps: Sequence[Step]) -> None:
    """Warnings go where errors go, so that output can be read by scripts."""
    for line in output.warnings_of(steps):
        typer.echo(f"lagscale: {line}", err=True)


def end(error: LagscaleError | None) -> None:
    """Raise it if there is one."""
    if error is not None:
        raise error


def _show(steps: Sequence[Step], *, as_json: bool) -> None:
    if as_json:
        typer.echo(output.as_json(steps, [step.refused for step in steps]))
    else:
        output.show_plan(steps, Console())
