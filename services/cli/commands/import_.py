"""`lagscale import`: from KEDA's manifests to a directory of registrations, ScaledObjects and a report."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lagscale.domain.tenancy import is_name
from lagscale.errors import FieldError, InvalidInput, LagscaleError
from services.cli.commands.trigger_options import DEFAULT_ADDRESS, Address, Mtls, Push, parse_trigger_options
from services.cli.importing.conversion import convert_all
from services.cli.importing.options import ImportOptions
from services.cli.importing.output import ReportData, build_files, check_directory, write_files
from services.cli.importing.yaml_text import read_sources


class NotEverythingConverted(LagscaleError):
    """Not everything could be converted; the report says why, and the rest is written."""


Sources = Annotated[
    list[str], typer.Option("--filename", "-f", metavar="FILE|DIR|-", help="Manifests; may be repeated. - reads stdin.")
]
Out = Annotated[Path, typer.Option(help="The directory to make; it must be new or empty.")]
Tenant = Annotated[
    str | None, typer.Option(help="One tenant for all; without it each namespace is a tenant of its name.")
]
Sustain = Annotated[
    int, typer.Option(help="For how long lag must last; 0 answers at the first sample, as KEDA does.", min=0)
]
Stuck = Annotated[
    int, typer.Option(help="In place of excludePersistentLag: for how long a commit stood still.", min=25)
]
WithTenants = Annotated[
    bool, typer.Option("--with-tenants", help="Declare the tenants too; leave it out where they exist.")
]


def import_(
    *,
    sources: Sources,
    out: Out = Path("lagscale-import"),
    tenant: Tenant = None,
    namespace: Annotated[str, typer.Option(help="The namespace of manifests that name none.")] = "default",
    instance: Annotated[str, typer.Option(help="The KEDA instance of the bindings.")] = "default",
    scaler_address: Address = DEFAULT_ADDRESS,
    push: Push = False,
    mtls_auth: Mtls = None,
    sustain_seconds: Sustain = 120,
    stuck_after_seconds: Stuck = 300,
    write_batches: Annotated[int, typer.Option(help="ScaledObjects in one batch.", min=1)] = 50,
    with_tenants: WithTenants = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Turn KEDA's kafka triggers into monitors; exit 1 if something could not be converted."""
    if tenant is not None and not is_name(tenant):
        raise InvalidInput([FieldError("--tenant", "must be 1 to 63 of a-z, 0-9 and -, with no - at either end")])
    options = ImportOptions(
        trigger_options=parse_trigger_options(scaler_address, push, mtls_auth),
        tenant=tenant,
        namespace=namespace,
        instance=instance,
        sustain_seconds=sustain_seconds,
        stuck_after_seconds=stuck_after_seconds,
        batch=write_batches,
        tenants=with_tenants,
    )
    check_directory(out)
    conversion = convert_all(read_sources(sources, sys.stdin), options)
    if not conversion.objects and not conversion.unreadable:
        raise InvalidInput([FieldError("-f", "there is no ScaledObject or ScaledJob with a kafka trigger in it")])
    texts, report = build_files(conversion, options, str(out))
    write_files(texts, out)
    if as_json:
        typer.echo(json.dumps(report, indent=2, ensure_ascii=False))
    else:
        _print_summary(report, out)
    failed_count = report["summary"]["notConverted"] + report["summary"]["unreadable"]
    if failed_count:
        raise NotEverythingConverted(
            f"{failed_count} could not be converted; {out}/report.md says why, the rest is written."
        )


def _print_summary(report: ReportData, out: Path) -> None:
    console = Console(soft_wrap=True)
    summary = report["summary"]
    console.print(
        f"{summary['converted']} converted: {summary['monitors']} monitors on {summary['clusters']} clusters, "
        f"in {summary['batches']} batches.",
        highlight=False,
    )
    for one in report["objects"]:
        for field_error in one["faults"]:
            console.print(f"not converted: {one['kind']} {one['namespace']}/{one['name']}: {field_error}", markup=False)
    for one in report["unreadable"]:
        console.print(f"not read: {one['where']}: {one['why']}", markup=False)
    if report["wanted"]:
        console.print(f"{len(report['wanted'])} values are still wanted; the report lists them.")
    console.print(f"Go on with {out}/README.md.", markup=False)
