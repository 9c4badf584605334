"""`lagscale get`, `lagscale delete` and `lagscale export`: objects that are there, shown, deleted, written as files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lagscale.domain.tenancy import DEFAULT_INSTANCE, is_name
from lagscale.errors import Fault, InvalidInput
from lagscale.settings import load
from services.cli import output as report
from services.cli.client import Client
from services.cli.commands.apply import AsJson, Yes, carry_out, confirm
from services.cli.objects.documents import read
from services.cli.objects.kinds import BINDING, KINDS, TENANT, Kind, Ref, named_kind
from services.cli.objects.manifests import named
from services.cli.objects.plan import Action, Step
from services.cli.objects.remote import Answer, Remote
from services.cli.objects.render import as_json as json_of
from services.cli.objects.render import as_yaml, manifest_of
from services.cli.settings import CliSettings, environment

_SHOWN_ITEMS = 3
_KIND = "tenant, cluster, monitor or binding; the plural means the same."


class Form(StrEnum):
    """How objects are printed."""

    TABLE = "table"
    YAML = "yaml"
    JSON = "json"


def get(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=_KIND)],
    which: Annotated[
        str | None,
        typer.Argument(metavar="[TENANT[/NAME]]", help="All that the key may see, a tenant's, or one."),
    ] = None,
    output: Annotated[Form, typer.Option("--output", "-o", help="yaml and json are what `apply` takes.")] = Form.TABLE,
) -> None:
    """Show objects: what they are at present as a table, or as files that declare them."""
    of_kind = named_kind(kind)
    with Client(load(CliSettings)) as client:
        remote = Remote(client)
        found = _found(remote, of_kind, which)
        if output is Form.TABLE:
            Console().print(_table(of_kind, found))
            return
        manifests = [manifest_of(ref, answer, remote.schemas) for ref, answer in found.items()]
    typer.echo(as_yaml(manifests) if output is Form.YAML else json_of(manifests), nl=output is Form.JSON)


def delete(
    kind: Annotated[str | None, typer.Argument(metavar="[KIND]", help=_KIND)] = None,
    which: Annotated[
        str | None,
        typer.Argument(
            metavar="[TENANT[/NAME]]", help="A binding is named TENANT/NAMESPACE or TENANT/INSTANCE/NAMESPACE."
        ),
    ] = None,
    *,
    file: Annotated[
        list[str] | None, typer.Option("--file", "-f", metavar="FILE|DIR|-", help="Delete what these files declare.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be deleted.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete one object, or all that files declare; what is not there is no error with files, and exit 3 without."""
    if (kind is None) == (file is None) or (kind is None) != (which is None):
        raise InvalidInput([Fault("KIND TENANT[/NAME]", "must be given, or else -f with files")])
    with Client(load(CliSettings)) as client:
        remote = Remote(client)
        if file is not None:
            steps = _declared(remote, file)
        else:
            ref = _ref(named_kind(kind or ""), which or "")
            steps = [Step(Action.DELETE, ref, seen=remote.one(ref).get("version"))]
        if dry_run:
            if as_json:
                typer.echo(report.as_json(steps, [None] * len(steps)))
            else:
                report.show_plan(steps, Console())
            return
        # One object that is named in full is meant.
        confirm([step for step in steps if step.action is Action.DELETE], yes=yes or file is None)
        carry_out(remote, steps, as_json=as_json)


def export(
    tenant: Annotated[str | None, typer.Argument(metavar="[TENANT]", help="Whose objects.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every tenant that the key may see.")] = False,
    automatic: Annotated[
        bool, typer.Option("--auto-registered", help="Monitors too that ScaledObjects registered.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="In place of standard output.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON in place of YAML.")] = False,
) -> None:
    """Write everything of a tenant as files that apply back to no change. Secrets are never in it."""
    if (tenant is None) != everything:
        raise InvalidInput([Fault("TENANT", "must be given, or else --all")])
    with Client(load(CliSettings)) as client:
        remote = Remote(client)
        found = _found(remote, TENANT, tenant)
        for name in [ref.tenant for ref in found]:
            for kind in KINDS[1:]:
                found |= remote.listed(kind, name)
        kept = {ref: answer for ref, answer in found.items() if automatic or not answer.get("autoRegistered")}
        manifests = [manifest_of(ref, kept[ref], remote.schemas) for ref in sorted(kept, key=lambda ref: ref.rank)]
    text = json_of(manifests) + "\n" if as_json else as_yaml(manifests)
    for line in _left_out(found, kept):
        typer.echo(f"lagscale: {line}", err=True)
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as wrong:
        raise InvalidInput([Fault(f"--output {output}", f"cannot be written: {wrong.strerror}")]) from wrong


def _left_out(found: Mapping[Ref, Answer], kept: Mapping[Ref, Answer]) -> Iterator[str]:
    for ref, answer in kept.items():
        if answer.get("hasSecrets"):
            yield f"{ref}: its secrets are not in the export; another system needs them under spec.secrets"
    if len(found) > len(kept):
        yield f"left out: {len(found) - len(kept)} monitors that ScaledObjects registered (--auto-registered)"


def _found(remote: Remote, kind: Kind, which: str | None) -> dict[Ref, Answer]:
    if which is not None and (kind is TENANT or "/" in which):
        ref = _ref(kind, which)
        return {ref: remote.one(ref)}
    if kind is TENANT or which is not None:
        return remote.listed(kind, "" if which is None else _ref(TENANT, which).tenant)
    return {ref: one for tenant in remote.listed(TENANT) for ref, one in remote.listed(kind, tenant.tenant).items()}


def _ref(kind: Kind, text: str) -> Ref:
    tenant, slash, name = text.partition("/")
    if kind is TENANT and is_name(text):
        return Ref(kind, text)
    if kind is TENANT or not is_name(tenant) or not (name if kind is BINDING else is_name(name)):
        form = "TENANT" if kind is TENANT else "TENANT/NAMESPACE" if kind is BINDING else "TENANT/NAME"
        raise InvalidInput([Fault(form, "must name one " + kind.word + (", as in shop/orders" if slash else ""))])
    if kind is BINDING and "/" not in name:
        name = f"{DEFAULT_INSTANCE}/{name}"
    return Ref(kind, tenant, name)


def _declared(remote: Remote, sources: Sequence[str]) -> list[Step]:
    """A step for each object of the files, what needs others first."""
    faults: list[Fault] = []
    refs = named(read(sources, faults), environment(), faults)
    if faults:
        raise InvalidInput(faults)
    present: dict[Ref, Answer] = {}
    tenants = remote.those({Ref(TENANT, ref.tenant) for ref in refs})
    for tenant in tenants:
        present[tenant] = tenants[tenant]
        for kind in KINDS[1:]:
            present |= remote.those({ref for ref in refs if ref.kind is kind and ref.tenant == tenant.tenant})
    return [
        Step(Action.DELETE if ref in present else Action.SAME, ref, seen=present.get(ref, {}).get("version"))
        for ref in reversed(refs)
    ]


def _table(kind: Kind, found: Mapping[Ref, Answer]) -> Table:
    names = ["tenant"] if kind is TENANT else ["tenant"] if kind is BINDING else ["tenant", kind.word]
    table = Table(*names, *kind.columns, *([] if kind is BINDING else ["version"]))
    for ref, answer in found.items():
        cells = [ref.tenant, ref.name][: len(names)] + [_cell(answer.get(field)) for field in kind.columns.values()]
        table.add_row(*map(Text, cells), *([] if kind is BINDING else [str(answer["version"])]))
    return table


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return str(value.get("code", "-"))
    if isinstance(value, list):
        more = f" and {len(value) - _SHOWN_ITEMS} more" if len(value) > _SHOWN_ITEMS else ""
        return ", ".join(map(str, value[:_SHOWN_ITEMS])) + more
    return "-" if value is None else str(value)
