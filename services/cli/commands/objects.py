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
from lagscale.errors import FieldError, InvalidInput
from lagscale.settings import load
from services.cli.client import ApiClient
from services.cli.commands.apply import AsJson, Yes, confirm, execute_plan
from services.cli.objects import plan_output
from services.cli.objects.documents import read_documents
from services.cli.objects.kinds import BINDING, KINDS, TENANT, ObjectKind, ObjectRef, parse_kind
from services.cli.objects.manifests import as_json as json_of
from services.cli.objects.manifests import as_yaml, build_manifest, read_refs
from services.cli.objects.plan import PlanAction, PlanStep
from services.cli.objects.requests import ApiObject, ObjectClient
from services.cli.settings import CliSettings, environment

_SHOWN_ITEMS = 3
_KIND = "tenant, cluster, monitor or binding; the plural means the same."


class OutputFormat(StrEnum):
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
    output: Annotated[
        OutputFormat, typer.Option("--output", "-o", help="yaml and json are what `apply` takes.")
    ] = OutputFormat.TABLE,
) -> None:
    """Show objects: what they are at present as a table, or as files that declare them."""
    of_kind = parse_kind(kind)
    with ApiClient(load(CliSettings)) as client:
        remote = ObjectClient(client)
        current = _fetch_objects(remote, of_kind, which)
        if output is OutputFormat.TABLE:
            Console().print(_build_table(of_kind, current))
            return
        manifests = [build_manifest(ref, answer, remote.schemas) for ref, answer in current.items()]
    typer.echo(
        as_yaml(manifests) if output is OutputFormat.YAML else json_of(manifests), nl=output is OutputFormat.JSON
    )


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
        raise InvalidInput([FieldError("KIND TENANT[/NAME]", "must be given, or else -f with files")])
    with ApiClient(load(CliSettings)) as client:
        remote = ObjectClient(client)
        if file is not None:
            steps = _plan_deletions(remote, file)
        else:
            ref = _parse_ref_argument(parse_kind(kind or ""), which or "")
            steps = [PlanStep(PlanAction.DELETE, ref, version=remote.one(ref).get("version"))]
        if dry_run:
            if as_json:
                typer.echo(plan_output.as_json(steps, [None] * len(steps)))
            else:
                plan_output.print_plan(steps, Console())
            return
        # One object that is named in full is meant.
        confirm([step for step in steps if step.action is PlanAction.DELETE], yes=yes or file is None)
        execute_plan(remote, steps, as_json=as_json)


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
        raise InvalidInput([FieldError("TENANT", "must be given, or else --all")])
    with ApiClient(load(CliSettings)) as client:
        remote = ObjectClient(client)
        current = _fetch_objects(remote, TENANT, tenant)
        for name in [ref.tenant for ref in current]:
            for kind in KINDS[1:]:
                current |= remote.list_objects(kind, name)
        exported = {ref: answer for ref, answer in current.items() if automatic or not answer.get("autoRegistered")}
        manifests = [
            build_manifest(ref, exported[ref], remote.schemas) for ref in sorted(exported, key=lambda ref: ref.sort_key)
        ]
    text = json_of(manifests) + "\n" if as_json else as_yaml(manifests)
    for line in _list_omissions(current, exported):
        typer.echo(f"lagscale: {line}", err=True)
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as wrong:
        raise InvalidInput([FieldError(f"--output {output}", f"cannot be written: {wrong.strerror}")]) from wrong


def _list_omissions(current: Mapping[ObjectRef, ApiObject], exported: Mapping[ObjectRef, ApiObject]) -> Iterator[str]:
    for ref, answer in exported.items():
        if answer.get("hasSecrets"):
            yield f"{ref}: its secrets are not in the export; another system needs them under spec.secrets"
    if len(current) > len(exported):
        yield f"left out: {len(current) - len(exported)} monitors that ScaledObjects registered (--auto-registered)"


def _fetch_objects(remote: ObjectClient, kind: ObjectKind, which: str | None) -> dict[ObjectRef, ApiObject]:
    if which is not None and (kind is TENANT or "/" in which):
        ref = _parse_ref_argument(kind, which)
        return {ref: remote.one(ref)}
    if kind is TENANT or which is not None:
        return remote.list_objects(kind, "" if which is None else _parse_ref_argument(TENANT, which).tenant)
    return {
        ref: one
        for tenant in remote.list_objects(TENANT)
        for ref, one in remote.list_objects(kind, tenant.tenant).items()
    }


def _parse_ref_argument(kind: ObjectKind, text: str) -> ObjectRef:
    tenant, slash, name = text.partition("/")
    if kind is TENANT and is_name(text):
        return ObjectRef(kind, text)
    if kind is TENANT or not is_name(tenant) or not (name if kind is BINDING else is_name(name)):
        form = "TENANT" if kind is TENANT else "TENANT/NAMESPACE" if kind is BINDING else "TENANT/NAME"
        raise InvalidInput([FieldError(form, "must name one " + kind.word + (", as in shop/orders" if slash else ""))])
    if kind is BINDING and "/" not in name:
        name = f"{DEFAULT_INSTANCE}/{name}"
    return ObjectRef(kind, tenant, name)


def _plan_deletions(remote: ObjectClient, sources: Sequence[str]) -> list[PlanStep]:
    """A step for each object of the files, what needs others first."""
    field_errors: list[FieldError] = []
    refs = read_refs(read_documents(sources, field_errors), environment(), field_errors)
    if field_errors:
        raise InvalidInput(field_errors)
    existing: dict[ObjectRef, ApiObject] = {}
    tenants = remote.get_many({ObjectRef(TENANT, ref.tenant) for ref in refs})
    for tenant in tenants:
        existing[tenant] = tenants[tenant]
        for kind in KINDS[1:]:
            existing |= remote.get_many({ref for ref in refs if ref.kind is kind and ref.tenant == tenant.tenant})
    return [
        PlanStep(
            PlanAction.DELETE if ref in existing else PlanAction.SAME, ref, version=existing.get(ref, {}).get("version")
        )
        for ref in reversed(refs)
    ]


def _build_table(kind: ObjectKind, current: Mapping[ObjectRef, ApiObject]) -> Table:
    names = ["tenant"] if kind is TENANT else ["tenant"] if kind is BINDING else ["tenant", kind.word]
    table = Table(*names, *kind.columns, *([] if kind is BINDING else ["version"]))
    for ref, answer in current.items():
        cells = [ref.tenant, ref.name][: len(names)] + [
            _format_cell(answer.get(field)) for field in kind.columns.values()
        ]
        table.add_row(*map(Text, cells), *([] if kind is BINDING else [str(answer["version"])]))
    return table


def _format_cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return str(value.get("code", "-"))
    if isinstance(value, list):
        more = f" and {len(value) - _SHOWN_ITEMS} more" if len(value) > _SHOWN_ITEMS else ""
        return ", ".join(map(str, value[:_SHOWN_ITEMS])) + more
    return "-" if value is None else str(value)
