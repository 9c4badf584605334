"""`lagscale get`, `lagscale delete` and `lagscale export`: list, delete and export the current objects."""

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
from services.cli.client import open_api
from services.cli.commands.apply import AsJson, Yes, confirm, execute_plan, print_plan
from services.cli.objects.documents import read_documents
from services.cli.objects.kinds import BINDING, KINDS, TENANT, ObjectKind, ObjectRef, parse_kind
from services.cli.objects.manifests import build_manifest, dump_json, dump_manifests, read_refs
from services.cli.objects.requests import ApiObject, ObjectClient, PlanAction, PlanStep
from services.cli.settings import environment

_MAX_ITEMS = 3
_KIND_HELP = "tenant, cluster, monitor or binding, singular or plural."


class OutputFormat(StrEnum):
    """Output formats of `get`."""

    TABLE = "table"
    YAML = "yaml"
    JSON = "json"


def get_objects(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=_KIND_HELP)],
    selection: Annotated[
        str | None,
        typer.Argument(metavar="[TENANT[/NAME]]", help="All visible objects, those of a tenant, or one object."),
    ] = None,
    output: Annotated[
        OutputFormat, typer.Option("--output", "-o", help="yaml and json can be passed to `apply`.")
    ] = OutputFormat.TABLE,
) -> None:
    """List or show objects as a table, or as YAML or JSON manifests."""
    object_kind = parse_kind(kind)
    with open_api() as client:
        objects_api = ObjectClient(client)
        current = _fetch_objects(objects_api, object_kind, selection)
        if output is OutputFormat.TABLE:
            Console().print(_build_table(object_kind, current))
            return
        manifests = [build_manifest(ref, answer, objects_api.schemas) for ref, answer in current.items()]
    typer.echo(
        dump_manifests(manifests) if output is OutputFormat.YAML else dump_json(manifests),
        nl=output is OutputFormat.JSON,
    )


def delete_objects(
    kind: Annotated[str | None, typer.Argument(metavar="[KIND]", help=_KIND_HELP)] = None,
    selection: Annotated[
        str | None,
        typer.Argument(
            metavar="[TENANT[/NAME]]", help="The object; for bindings TENANT/NAMESPACE or TENANT/INSTANCE/NAMESPACE."
        ),
    ] = None,
    *,
    file: Annotated[
        list[str] | None,
        typer.Option("--file", "-f", metavar="FILE|DIR|-", help="Delete the objects declared in these files."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be deleted without deleting it.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete an object, or all objects declared in files. A missing object is ignored with -f; otherwise exit 3."""
    if (kind is None) == (file is None) or (kind is None) != (selection is None):
        raise InvalidInput.of("KIND TENANT[/NAME]", "required, unless files are given with -f")
    with open_api() as client:
        objects_api = ObjectClient(client)
        if file is not None:
            steps = _plan_deletions(objects_api, file)
        else:
            ref = _parse_ref_argument(parse_kind(kind or ""), selection or "")
            steps = [PlanStep(PlanAction.DELETE, ref, version=objects_api.get_one(ref).get("version"))]
        if dry_run:
            print_plan(steps, as_json=as_json)
            return
        # An object given by its full name needs no confirmation.
        confirm([step for step in steps if step.action is PlanAction.DELETE], yes=yes or file is None)
        execute_plan(objects_api, steps, as_json=as_json)


def export_objects(
    tenant: Annotated[str | None, typer.Argument(metavar="[TENANT]", help="The tenant.")] = None,
    all_tenants: Annotated[bool, typer.Option("--all", help="All tenants visible to the key.")] = False,
    automatic: Annotated[
        bool, typer.Option("--auto-registered", help="Include monitors registered by ScaledObjects.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Output file; default: standard output.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON instead of YAML.")] = False,
) -> None:
    """Export all objects of a tenant as manifests for `apply`. Secrets are not included."""
    if (tenant is None) != all_tenants:
        raise InvalidInput.of("TENANT", "required, unless --all is given")
    with open_api() as client:
        objects_api = ObjectClient(client)
        current = _fetch_objects(objects_api, TENANT, tenant)
        for name in [ref.tenant for ref in current]:
            for kind in KINDS[1:]:
                current |= objects_api.list_objects(kind, name)
        exported = {ref: answer for ref, answer in current.items() if automatic or not answer.get("autoRegistered")}
        manifests = [
            build_manifest(ref, exported[ref], objects_api.schemas)
            for ref in sorted(exported, key=lambda ref: ref.sort_key)
        ]
    text = dump_json(manifests) + "\n" if as_json else dump_manifests(manifests)
    for line in _list_omissions(current, exported):
        typer.echo(f"lagscale: {line}", err=True)
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput.of(f"--output {output}", f"cannot be written: {error.strerror}") from error


def _list_omissions(current: Mapping[ObjectRef, ApiObject], exported: Mapping[ObjectRef, ApiObject]) -> Iterator[str]:
    for ref, answer in exported.items():
        if answer.get("hasSecrets"):
            yield f"{ref}: secrets are not exported; add them under spec.secrets to apply it to another system"
    if len(current) > len(exported):
        yield f"omitted: {len(current) - len(exported)} monitors registered by ScaledObjects; include them with --auto-registered"


def _fetch_objects(objects_api: ObjectClient, kind: ObjectKind, selection: str | None) -> dict[ObjectRef, ApiObject]:
    if selection is not None and (kind is TENANT or "/" in selection):
        ref = _parse_ref_argument(kind, selection)
        return {ref: objects_api.get_one(ref)}
    if kind is TENANT or selection is not None:
        return objects_api.list_objects(
            kind, "" if selection is None else _parse_ref_argument(TENANT, selection).tenant
        )
    return {
        ref: one
        for tenant in objects_api.list_objects(TENANT)
        for ref, one in objects_api.list_objects(kind, tenant.tenant).items()
    }


def _parse_ref_argument(kind: ObjectKind, text: str) -> ObjectRef:
    tenant, slash, name = text.partition("/")
    if kind is TENANT and is_name(text):
        return ObjectRef(kind, text)
    if kind is TENANT or not is_name(tenant) or not (name if kind is BINDING else is_name(name)):
        form = "TENANT" if kind is TENANT else "TENANT/NAMESPACE" if kind is BINDING else "TENANT/NAME"
        raise InvalidInput.of(form, f"expected one {kind.label}" + (", for example shop/orders" if slash else ""))
    if kind is BINDING and "/" not in name:
        name = f"{DEFAULT_INSTANCE}/{name}"
    return ObjectRef(kind, tenant, name)


def _plan_deletions(objects_api: ObjectClient, sources: Sequence[str]) -> list[PlanStep]:
    """A step for each object of the files, dependent objects first."""
    field_errors: list[FieldError] = []
    refs = read_refs(read_documents(sources, field_errors), environment(), field_errors)
    if field_errors:
        raise InvalidInput(field_errors)
    existing: dict[ObjectRef, ApiObject] = {}
    tenants = objects_api.get_many({ObjectRef(TENANT, ref.tenant) for ref in refs})
    for tenant in tenants:
        existing[tenant] = tenants[tenant]
        for kind in KINDS[1:]:
            existing |= objects_api.get_many({ref for ref in refs if ref.kind is kind and ref.tenant == tenant.tenant})
    return [
        PlanStep(
            PlanAction.DELETE if ref in existing else PlanAction.SAME, ref, version=existing.get(ref, {}).get("version")
        )
        for ref in reversed(refs)
    ]


def _build_table(kind: ObjectKind, current: Mapping[ObjectRef, ApiObject]) -> Table:
    names = ["tenant"] if kind is TENANT else ["tenant"] if kind is BINDING else ["tenant", kind.label]
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
        more = f" and {len(value) - _MAX_ITEMS} more" if len(value) > _MAX_ITEMS else ""
        return ", ".join(map(str, value[:_MAX_ITEMS])) + more
    return "-" if value is None else str(value)
