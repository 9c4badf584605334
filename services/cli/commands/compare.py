"""`lagscale compare`: what KEDA's `kafka` trigger would have said, and what Lagscale says, over the last hours."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lagscale.clock import to_ms
from lagscale.domain.tenancy import is_name
from lagscale.errors import FieldError, InvalidInput, LagscaleError, NotAuthenticated, StoreUnavailable
from lagscale.settings import load
from services.cli.client import ApiClient
from services.cli.commands.plot import PlotFrame, PlotPoint, draw_plot
from services.cli.settings import CliSettings

JsonObject = Mapping[str, Any]
_PAGE = "500"
_SECONDS = 120.0
_LISTED = 12
_WIDEST = 120
_HEIGHT = 5


class NotEverythingCompared(LagscaleError):
    """Not every monitor could be compared."""


class ComparisonClient(ApiClient):
    """A client that waits for answers that are long in the making: hundreds of moments are judged for one."""

    def __init__(self, settings: CliSettings, transport: httpx.BaseTransport | None = None) -> None:
        super().__init__(settings, transport)
        self._http.timeout = httpx.Timeout(_SECONDS)


@dataclass(frozen=True, slots=True)
class ComparedMonitor:
    """A monitor to compare, and what KEDA's trigger was given."""

    tenant: str
    monitor: str
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """TENANT/MONITOR."""
        return f"{self.tenant}/{self.monitor}"


def compare(
    which: Annotated[
        str | None, typer.Argument(metavar="[TENANT[/MONITOR]]", help="One monitor, all of a tenant, or all there are.")
    ] = None,
    *,
    hours: Annotated[float, typer.Option(help="How far to look back.", min=0.01, max=24.0)] = 6,
    imported: Annotated[
        Path | None,
        typer.Option(help="The directory of an import: its monitors, with KEDA's keys and replicas as they were."),
    ] = None,
    keda: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A key of KEDA's trigger, as in lagThreshold=10; may be repeated."),
    ] = None,
    least: Annotated[int | None, typer.Option("--min", help="minReplicaCount; 0, if left out.", min=0)] = None,
    most: Annotated[int | None, typer.Option("--max", help="maxReplicaCount.", min=1)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The API's answers as they are.")] = False,
) -> None:
    """Compare monitors with KEDA's kafka trigger, both worked out from the samples; exit 1 if one cannot be."""
    query = _build_query(keda or [], least, most)
    with ComparisonClient(load(CliSettings)) as client:
        monitors = _select_monitors(client, which, imported)
        answers = [
            (one, _fetch_comparison(client, one, {**one.query, **query, "hours": f"{hours:g}"})) for one in monitors
        ]
    if as_json:
        typer.echo(json.dumps([_to_json(one, answer) for one, answer in answers], indent=2))
    else:
        _print_comparisons(answers, Console())
    failed = [one.name for one, answer in answers if isinstance(answer, LagscaleError)]
    if failed:
        raise NotEverythingCompared(f"{len(failed)} of {len(answers)} monitors could not be compared.")


def _build_query(keys: Sequence[str], least: int | None, most: int | None) -> dict[str, str]:
    query: dict[str, str] = {}
    field_errors = []
    for text in keys:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            field_errors.append(FieldError("--keda", "must read like lagThreshold=10"))
        query[name.strip()] = value.strip()
    if field_errors:
        raise InvalidInput(field_errors)
    query |= {} if least is None else {"minReplicas": str(least)}
    return query | ({} if most is None else {"maxReplicas": str(most)})


def _select_monitors(client: ApiClient, which: str | None, imported: Path | None) -> list[ComparedMonitor]:
    tenant, slash, monitor = (which or "").partition("/")
    if which is not None and (not is_name(tenant) or (slash and not is_name(monitor))):
        raise InvalidInput([FieldError("TENANT/MONITOR", "must read like shop, or shop/ingest-logs")])
    if imported is not None:
        selected = [
            one for one in _read_import(imported) if tenant in {"", one.tenant} and monitor in {"", one.monitor}
        ]
        if not selected:
            raise InvalidInput(
                [FieldError("--imported", "holds no such monitor; leave TENANT/MONITOR out for all of it")]
            )
        return selected
    if monitor:
        return [ComparedMonitor(tenant, monitor)]
    tenants = [tenant] if tenant else [str(one["name"]) for one in _list_all(client, "/v1/tenants")]
    return [
        ComparedMonitor(name, str(one["name"]))
        for name in tenants
        for one in _list_all(client, f"/v1/tenants/{name}/monitors")
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
        raise InvalidInput([FieldError("--imported", f"{path} is no report of `lagscale import`")]) from None


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _list_all(client: ApiClient, path: str) -> Iterator[JsonObject]:
    cursor: str | None = None
    while True:
        page = client.get(path, {"limit": _PAGE, **({"cursor": cursor} if cursor else {})})
        yield from page["items"]
        cursor = page["next"]
        if cursor is None:
            return


def _fetch_comparison(client: ApiClient, one: ComparedMonitor, query: Mapping[str, str]) -> JsonObject | LagscaleError:
    """The comparison, or why there is none; what concerns all of them is raised."""
    try:
        return client.get(f"/v1/tenants/{one.tenant}/monitors/{one.monitor}/compare", query)
    except (StoreUnavailable, NotAuthenticated):
        raise
    except LagscaleError as wrong:
        return wrong


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
    table = Table(
        "monitor", "scalings", "most replicas", "on average", "without an answer", caption="KEDA's trigger / Lagscale"
    )
    for one, answer in answers:
        if isinstance(answer, LagscaleError):
            table.add_row(Text(one.name), Text("not compared", "yellow"))
            continue
        both = (answer["keda"], answer["lagscale"])
        names = ("scaleEvents", "peakReplicas", "averageReplicas", "errors")
        table.add_row(Text(one.name), *(" / ".join(f"{side[name]:g}" for side in both) for name in names))
    return table


def _print_comparison(name: str, answer: JsonObject, console: Console, *, single: bool) -> None:
    width = min(console.width, _WIDEST)
    console.print(Text.assemble((name, "bold"), f": {answer['sentence']}"))
    if single:
        for side, title in (("keda", "KEDA's kafka trigger"), ("lagscale", "Lagscale")):
            console.print(Text(f"{title}, replicas", "dim"))
            for line in _draw_replicas(answer, side, width):
                console.print(line)
        begin, end = (_parse_time(answer[key]) for key in ("begin", "end"))
        console.print(
            Text(f"{begin:%H:%M:%S} to {end:%H:%M:%S} UTC, a moment every {answer['stepSeconds']:g} s", "dim")
        )
    shown = answer["differences"][: _LISTED if single else 3]
    for one in shown:
        begin, end = _parse_time(one["begin"]), _parse_time(one["end"])
        console.print(
            Text(
                f"  {begin:%H:%M:%S} to {end:%H:%M:%S}: {one['kedaPeakReplicas']} against {one['lagscalePeakReplicas']}. {one['sentence']}"
            )
        )
    if len(answer["differences"]) > len(shown):
        console.print(Text(f"  and {len(answer['differences']) - len(shown)} more", "dim"))
    for note in answer["notes"] if single else ():
        console.print(Text(note, "yellow"))


def _draw_replicas(answer: JsonObject, side: str, width: int) -> list[Text]:
    step_ms = round(answer["stepSeconds"] * 1000)
    frame = PlotFrame(
        _to_milliseconds(answer["begin"]),
        max(_to_milliseconds(answer["end"]), _to_milliseconds(answer["begin"]) + 1),
        2 * step_ms,
    )
    points = [
        PlotPoint(_to_milliseconds(one["at"]), float(one[side]["replicas"]), float(one[side]["replicas"]))
        for one in answer["points"]
    ]
    most = max(one[name]["replicas"] for one in answer["points"] for name in ("keda", "lagscale"))
    return draw_plot(points, None, frame, width, _HEIGHT, top=float(max(most, 1)))


def _parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _to_milliseconds(text: str) -> int:
    return to_ms(_parse_time(text))
