"""`lagscale import`: convert KEDA manifests to a directory of registrations, ScaledObjects and a report."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lagscale.domain.tenancy import NAME_FORM, is_name
from lagscale.domain.wording.numbers import format_count
from lagscale.errors import InvalidInput, LagscaleError
from lagscale.settings import load
from services.cli.importing.conversion import convert_all
from services.cli.importing.options import (
    DEFAULT_ADDRESS,
    DEFAULT_STUCK_AFTER_SECONDS,
    DEFAULT_SUSTAIN_SECONDS,
    Address,
    ImportOptions,
    Mtls,
    Push,
    parse_trigger_options,
)
from services.cli.importing.output import ReportData, build_files, check_directory, write_files
from services.cli.importing.yaml_text import read_sources
from services.cli.output import print_json
from services.cli.settings import CliSettings


class NotEverythingConverted(LagscaleError):
    """Some objects could not be converted; see report.md."""


Sources = Annotated[
    list[str],
    typer.Option(
        "--filename", "-f", metavar="FILE|DIR|-", help="Manifest files or directories; repeatable; - for stdin."
    ),
]
Out = Annotated[Path, typer.Option(help="Output directory; must be new or empty.")]
Tenant = Annotated[
    str | None, typer.Option(help="Tenant for all monitors; default: one tenant per namespace, with its name.")
]
KedaNamespace = Annotated[
    str | None,
    typer.Option(
        metavar="NAMESPACE",
        help="Namespace of KEDA's operator, which has the Secrets of ClusterTriggerAuthentications; "
        "default: the only one of the manifests that has the Secret, or keda.",
    ),
]
Sustain = Annotated[
    int, typer.Option(help="sustainSeconds of the monitors; 0 reacts to the first sample, as KEDA does.", min=0)
]
Stuck = Annotated[int, typer.Option(help="stuckAfterSeconds for triggers with excludePersistentLag.", min=25)]
WithTenants = Annotated[bool, typer.Option("--with-tenants", help="Declare the tenants too; omit if they exist.")]


def import_manifests(
    *,
    sources: Sources,
    out: Out = Path("lagscale-import"),
    tenant: Tenant = None,
    namespace: Annotated[str, typer.Option(help="Namespace for manifests without one.")] = "default",
    instance: Annotated[str, typer.Option(help="KEDA instance for the bindings.")] = "default",
    keda_namespace: KedaNamespace = None,
    scaler_address: Address = DEFAULT_ADDRESS,
    push: Push = False,
    mtls_auth: Mtls = None,
    sustain_seconds: Sustain = DEFAULT_SUSTAIN_SECONDS,
    stuck_after_seconds: Stuck = DEFAULT_STUCK_AFTER_SECONDS,
    write_batches: Annotated[int, typer.Option(help="Number of ScaledObjects per batch.", min=1)] = 50,
    with_tenants: WithTenants = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Convert KEDA's kafka triggers to monitors; exit 1 if something could not be converted."""
    load(CliSettings)
    if tenant is not None and not is_name(tenant):
        raise InvalidInput.of("--tenant", NAME_FORM)
    options = ImportOptions(
        trigger_options=parse_trigger_options(scaler_address, push, mtls_auth),
        tenant=tenant,
        namespace=namespace,
        instance=instance,
        keda_namespace=keda_namespace,
        sustain_seconds=sustain_seconds,
        stuck_after_seconds=stuck_after_seconds,
        batch_size=write_batches,
        with_tenants=with_tenants,
    )
    check_directory(out)
    conversion = convert_all(read_sources(sources), options)
    if not conversion.objects and not conversion.unreadable:
        raise InvalidInput.of("-f", "contains no ScaledObject or ScaledJob with a kafka trigger")
    texts, report = build_files(conversion, options, str(out))
    write_files(texts, out)
    if as_json:
        print_json(report)
    else:
        _print_summary(report, out)
    not_converted, unreadable = report["summary"]["notConverted"], report["summary"]["unreadable"]
    if not_converted or unreadable:
        raise NotEverythingConverted(
            f"{format_count(not_converted, 'object')} not converted, {format_count(unreadable, 'document')} unreadable; "
            f"see {out}/report.md. All others were written."
        )


def _print_summary(report: ReportData, out: Path) -> None:
    console = Console(soft_wrap=True)
    summary = report["summary"]
    console.print(
        f"{format_count(summary['converted'], 'object')} converted: {format_count(summary['monitors'], 'monitor')} on "
        f"{format_count(summary['clusters'], 'cluster')}, in {format_count(summary['batches'], 'batch', 'batches')}.",
        highlight=False,
    )
    for one in report["objects"]:
        for field_error in one["errors"]:
            console.print(f"not converted: {one['kind']} {one['namespace']}/{one['name']}: {field_error}", markup=False)
    for one in report["unreadable"]:
        console.print(f"unreadable: {one['location']}: {one['reason']}", markup=False)
    for task, objects in Counter(task for one in report["objects"] for task in one["tasks"]).items():
        console.print(f"to do ({format_count(objects, 'object')}): {task}", markup=False, highlight=False)
    if report["missingValues"]:
        console.print(
            f"{format_count(len(report['missingValues']), 'missing value')}; see the report.", highlight=False
        )
    console.print(f"Next: {out}/README.md.", markup=False)
