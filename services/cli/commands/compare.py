"""`lagscale compare`: replicas by KEDA's `kafka` trigger and by Lagscale over the last hours."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lagscale.domain.tenancy import is_name
from lagscale.errors import FieldError, InvalidInput, LagscaleError, NotAuthenticated, StoreUnavailable
from services.cli.client import ApiClient, open_api
from services.cli.commands.plot import PlotFrame, PlotPoint, draw_plot
from services.cli.output import format_clock, parse_time_ms, print_json

JsonObject = Mapping[str, Any]
_PAGE_SIZE = 500
#: One response evaluates hundreds of points in time.
_TIMEOUT_SECONDS = 120.0
_MAX_ROWS = 12
_MAX_WIDTH = 120
_HEIGHT = 5


class NotEverythingCompared(LagscaleError):
    """Some monitors could not be compared."""


@dataclass(frozen=True, slots=True)
class ComparedMonitor:
    """A monitor to compare, with the keys of KEDA's trigger."""

    tenant: str
    monitor: str
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """TENANT/MONITOR."""
        return f"{self.tenant}/{self.monitor}"


def compare_monitors(
    selection: Annotated[
        str | None,
        typer.Argument(
            metavar="[TENANT[/MONITOR]]", help="One monitor, all monitors of a tenant, or (default) all monitors."
        ),
    ] = None,
    *,
    hours: Annotated[float, typer.Option(help="Hours to look back.", min=0.01, max=24.0)] = 6,
    imported: Annotated[
        Path | None,
        typer.Option(
            help="Directory written by `lagscale import`: compare its monitors with their original KEDA keys and replica counts."
        ),
    ] = None,
    keda: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Key of KEDA's trigger, for example lagThreshold=10; repeatable."),
    ] = None,
    min_replicas: Annotated[int | None, typer.Option("--min", help="minReplicaCount; default: 0.", min=0)] = None,
    max_replicas: Annotated[int | None, typer.Option("--max", help="maxReplicaCount.", min=1)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the API responses as JSON.")] = False,
) -> None:
    """Compare monitors with KEDA's kafka trigger on the stored samples; exit 1 if a monitor cannot be compared."""
    query = _build_query(keda or [], min_replicas, max_replicas)
    with open_api(_TIMEOUT_SECONDS) as client:
        monitors = _select_monitors(client, selection, imported)
        answers = [
            (one, _fetch_comparison(client, one, {**one.query, **query, "hours": f"{hours:g}"})) for one in monitors
        ]
    if as_json:
        print_json([_to_json(one, answer) for one, answer in answers])
    else:
        _print_comparisons(answers, Console())
    failed = [one.name for one, answer in answers if isinstance(answer, LagscaleError)]
    if failed:
        raise NotEverythingCompared(f"{len(failed)} of {len(answers)} monitors could not be compared.")


def _build_query(keys: Sequence[str], min_replicas: int | None, max_replicas: int | None) -> dict[str, str]:
    query: dict[str, str] = {}
    field_errors = []
    for text in keys:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            field_errors.append(FieldError("--keda", "expected KEY=VALUE, for example lagThreshold=10"))
        query[name.strip()] = value.strip()
    if field_errors:
        raise InvalidInput(field_errors)
    query |= {} if min_replicas is None else {"minReplicas": str(min_replicas)}
    return query | ({} if max_replicas is None else {"maxReplicas": str(max_replicas)})


def _select_monitors(client: ApiClient, selection: str | None, imported: Path | None) -> list[ComparedMonitor]:
    tenant, slash, monitor = (selection or "").partition("/")
    if selection is not None and (not is_name(tenant) or (slash and not is_name(monitor))):
        raise InvalidInput.of("TENANT/MONITOR", "expected TENANT or TENANT/MONITOR, for example shop/ingest-logs")
    if imported is not None:
        selected = [
            one for one in _read_import(imported) if tenant in {"", one.tenant} and monitor in {"", one.monitor}
        ]
        if not selected:
            raise InvalidInput.of("--imported", "contains no such monitor; omit TENANT/MONITOR to compare all of them")
        return selected
    if monitor:
        return [ComparedMonitor(tenant, monitor)]
    tenants = (
        [tenant] if tenant else [str(one["name"]) for one in client.list_items("/v1/tenants", page_size=_PAGE_SIZE)]
    )
    return [
        ComparedMonitor(name, str(one["name"]))
        for name in tenants
        for one in client.list_items(f"/v1/tenants/{name}/monitors", page_size=_PAGE_SIZE)
    ]


def _read_import(directory: Path) -> list[ComparedMonitor]:
    path = directory / "report.json"
    try:
        objects = json.loads(path.read_text(encoding="utf-8"))["objects"]
        return [
            ComparedMonitor(
                one["tenant"],
                monitor["name"],
                {
                    **{key: _text(value) for key, value in monitor["keda"].items()},
                    "minReplicas": str(monitor["minReplicas"]),
                    "maxReplicas": str(max(1, monitor["maxReplicas"])),
                },
            )
            for one in objects
            for monitor in one["monitors"]
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInput.of("--imported", f"{path} is not a report of `lagscale import`") from None


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _fetch_comparison(client: ApiClient, one: ComparedMonitor, query: Mapping[str, str]) -> JsonObject | LagscaleError:
    """The comparison, or its error; errors that would stop every other one too are raised."""
    try:
        return client.get(f"/v1/tenants/{one.tenant}/monitors/{one.monitor}/compare", query)
    except (StoreUnavailable, NotAuthenticated):
        raise
    except LagscaleError as error:
        return error


def _to_json(one: ComparedMonitor, answer: JsonObject | LagscaleError) -> dict[str, Any]:
    if isinstance(answer, LagscaleError):
        return {"tenant": one.tenant, "monitor": one.monitor, "error": answer.message}
    return {"tenant": one.tenant, **answer}


def _print_comparisons(answers: Sequence[tuple[ComparedMonitor, JsonObject | LagscaleError]], console: Console) -> None:
    if len(answers) != 1:
        console.print(_build_table(answers))
    for one, answer in answers:
        if isinstance(answer, LagscaleError):
            console.print(Text(f"{one.name}: {answer.message}", "yellow"))
        elif len(answers) == 1 or answer["differences"]:
            _print_comparison(one.name, answer, console, single=len(answers) == 1)


def _build_table(answers: Sequence[tuple[ComparedMonitor, JsonObject | LagscaleError]]) -> Table:
    table = Table("monitor", "scalings", "max replicas", "average", "errors", caption="KEDA's trigger / Lagscale")
    for one, answer in answers:
        if isinstance(answer, LagscaleError):
            table.add_row(Text(one.name), Text("not compared", "yellow"))
            continue
        both = (answer["keda"], answer["lagscale"])
        names = ("scaleEvents", "peakReplicas", "averageReplicas", "errors")
        table.add_row(Text(one.name), *(" / ".join(f"{side[name]:g}" for side in both) for name in names))
    return table


def _print_comparison(name: str, answer: JsonObject, console: Console, *, single: bool) -> None:
    width = min(console.width, _MAX_WIDTH)
    console.print(Text.assemble((name, "bold"), f": {answer['sentence']}"))
    if single:
        for side, title in (("keda", "KEDA's kafka trigger"), ("lagscale", "Lagscale")):
            console.print(Text(f"{title}, replicas", "dim"))
            for line in _draw_replicas(answer, side, width):
                console.print(line)
        console.print(Text(f"{_format_span(answer)} UTC, one point every {answer['stepSeconds']:g} s", "dim"))
    shown = answer["differences"][: _MAX_ROWS if single else 3]
    for one in shown:
        peaks = f"{one['kedaPeakReplicas']} vs. {one['lagscalePeakReplicas']}"
        console.print(Text(f"  {_format_span(one)}: {peaks}. {one['sentence']}"))
    if len(answer["differences"]) > len(shown):
        console.print(Text(f"  and {len(answer['differences']) - len(shown)} more", "dim"))
    for note in answer["notes"] if single else ():
        console.print(Text(note, "yellow"))


def _format_span(span: JsonObject) -> str:
    return f"{format_clock(span['begin'])} to {format_clock(span['end'])}"


def _draw_replicas(answer: JsonObject, side: str, width: int) -> list[Text]:
    step_ms = round(answer["stepSeconds"] * 1000)
    begin_ms = parse_time_ms(answer["begin"])
    frame = PlotFrame(begin_ms, max(parse_time_ms(answer["end"]), begin_ms + 1), 2 * step_ms)
    replicas = [(parse_time_ms(one["at"]), float(one[side]["replicas"])) for one in answer["points"]]
    points = [PlotPoint(at_ms, number, number) for at_ms, number in replicas]
    highest = max(one[name]["replicas"] for one in answer["points"] for name in ("keda", "lagscale"))
    return draw_plot(points, None, frame, width, _HEIGHT, top=float(max(highest, 1)))
