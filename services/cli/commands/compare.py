"""`lagscale compare`: what KEDA's `kafka` trigger would have said, and what Lagscale says, over the last hours."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lagscale.domain.tenancy import is_name
from lagscale.errors import Fault, InvalidInput, LagscaleError, NotAuthenticated, StoreUnavailable
from lagscale.settings import load
from services.cli.client import Client
from services.cli.commands.plot import Frame, Point, plot
from services.cli.settings import CliSettings

Found = Mapping[str, Any]
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
_PAGE = "500"
_SECONDS = 120.0
_LISTED = 12
_WIDEST = 120
_HEIGHT = 5


class NotEverythingCompared(LagscaleError):
    """Not every monitor could be compared."""


class PatientClient(Client):
    """A client that waits for answers that are long in the making: hundreds of moments are judged for one."""

    def __init__(self, settings: CliSettings, transport: httpx.BaseTransport | None = None) -> None:
        super().__init__(settings, transport)
        self._http.timeout = httpx.Timeout(_SECONDS)


@dataclass(frozen=True, slots=True)
class Subject:
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
    query = _query(keda or [], least, most)
    with PatientClient(load(CliSettings)) as client:
        subjects = _subjects(client, which, imported)
        answers = [(one, _asked(client, one, {**one.query, **query, "hours": f"{hours:g}"})) for one in subjects]
    if as_json:
        typer.echo(json.dumps([_plain(one, answer) for one, answer in answers], indent=2))
    else:
        _show(answers, Console())
    failed = [one.name for one, answer in answers if isinstance(answer, LagscaleError)]
    if failed:
        raise NotEverythingCompared(f"{len(failed)} of {len(answers)} monitors could not be compared.")


def _query(keys: Sequence[str], least: int | None, most: int | None) -> dict[str, str]:
    query: dict[str, str] = {}
    faults = []
    for text in keys:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            faults.append(Fault("--keda", "must read like lagThreshold=10"))
        query[name.strip()] = value.strip()
    if faults:
        raise InvalidInput(faults)
    query |= {} if least is None else {"minReplicas": str(least)}
    return query | ({} if most is None else {"maxReplicas": str(most)})


def _subjects(client: Client, which: str | None, imported: Path | None) -> list[Subject]:
    tenant, slash, monitor = (which or "").partition("/")
    if which is not None and (not is_name(tenant) or (slash and not is_name(monitor))):
        raise InvalidInput([Fault("TENANT/MONITOR", "must read like shop, or shop/ingest-logs")])
    if imported is not None:
        found = [one for one in _of_import(imported) if tenant in {"", one.tenant} and monitor in {"", one.monitor}]
        if not found:
            raise InvalidInput([Fault("--imported", "holds no such monitor; leave TENANT/MONITOR out for all of it")])
        return found
    if monitor:
        return [Subject(tenant, monitor)]
    tenants = [tenant] if tenant else [str(one["name"]) for one in _every(client, "/v1/tenants")]
    return [
        Subject(name, str(one["name"])) for name in tenants for one in _every(client, f"/v1/tenants/{name}/monitors")
    ]


def _of_import(directory: Path) -> list[Subject]:
    path = directory / "report.json"
    try:
        objects = json.loads(path.read_text(encoding="utf-8"))["objects"]
        return [
            Subject(
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
        raise InvalidInput([Fault("--imported", f"{path} is no report of `lagscale import`")]) from None


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _every(client: Client, path: str) -> Iterator[Found]:
    cursor: str | None = None
    while True:
        page = client.get(path, {"limit": _PAGE, **({"cursor": cursor} if cursor else {})})
        yield from page["items"]
        cursor = page["next"]
        if cursor is None:
            return


def _asked(client: Client, one: Subject, query: Mapping[str, str]) -> Found | LagscaleError:
    """The comparison, or why there is none; what concerns all of them is raised."""
    try:
        return client.get(f"/v1/tenants/{one.tenant}/monitors/{one.monitor}/compare", query)
    except (StoreUnavailable, NotAuthenticated):
        raise
    except LagscaleError as wrong:
        return wrong


def _plain(one: Subject, answer: Found | LagscaleError) -> dict[str, Any]:
    if isinstance(answer, LagscaleError):
        return {"tenant": one.tenant, "monitor": one.monitor, "error": answer.message}
    return {"tenant": one.tenant, **answer}


def _show(answers: Sequence[tuple[Subject, Found | LagscaleError]], console: Console) -> None:
    if len(answers) != 1:
        console.print(_table(answers))
    for one, answer in answers:
        if isinstance(answer, LagscaleError):
            console.print(Text(f"{one.name}: {answer.message}", "yellow"))
        elif len(answers) == 1 or answer["differences"]:
            _page(one.name, answer, console, whole=len(answers) == 1)


def _table(answers: Sequence[tuple[Subject, Found | LagscaleError]]) -> Table:
    table = Table(
        "monitor", "scalings", "most replicas", "on average", "without an answer", caption="KEDA's trigger / Lagscale"
    )
    for one, answer in answers:
        if isinstance(answer, LagscaleError):
            table.add_row(Text(one.name), Text("not compared", "yellow"))
            continue
        both = (answer["keda"], answer["lagscale"])
        names = ("scaleEvents", "greatestReplicas", "averageReplicas", "errors")
        table.add_row(Text(one.name), *(" / ".join(f"{side[name]:g}" for side in both) for name in names))
    return table


def _page(name: str, answer: Found, console: Console, *, whole: bool) -> None:
    width = min(console.width, _WIDEST)
    console.print(Text.assemble((name, "bold"), f": {answer['sentence']}"))
    if whole:
        for side, title in (("keda", "KEDA's kafka trigger"), ("lagscale", "Lagscale")):
            console.print(Text(f"{title}, replicas", "dim"))
            for line in _plot(answer, side, width):
                console.print(line)
        begin, end = (_time(answer[key]) for key in ("begin", "end"))
        console.print(
            Text(f"{begin:%H:%M:%S} to {end:%H:%M:%S} UTC, a moment every {answer['stepSeconds']:g} s", "dim")
        )
    shown = answer["differences"][: _LISTED if whole else 3]
    for one in shown:
        begin, end = _time(one["begin"]), _time(one["end"])
        console.print(
            Text(
                f"  {begin:%H:%M:%S} to {end:%H:%M:%S}: {one['kedaGreatest']} against {one['lagscaleGreatest']}. {one['sentence']}"
            )
        )
    if len(answer["differences"]) > len(shown):
        console.print(Text(f"  and {len(answer['differences']) - len(shown)} more", "dim"))
    for note in answer["notes"] if whole else ():
        console.print(Text(note, "yellow"))


def _plot(answer: Found, side: str, width: int) -> list[Text]:
    step_ms = round(answer["stepSeconds"] * 1000)
    frame = Frame(_ms(answer["begin"]), max(_ms(answer["end"]), _ms(answer["begin"]) + 1), 2 * step_ms)
    points = [
        Point(_ms(one["at"]), float(one[side]["replicas"]), float(one[side]["replicas"])) for one in answer["moments"]
    ]
    most = max(one[name]["replicas"] for one in answer["moments"] for name in ("keda", "lagscale"))
    return plot(points, None, frame, width, _HEIGHT, top=float(max(most, 1)))


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _ms(text: str) -> int:
    return (_time(text) - _BEGIN) // timedelta(milliseconds=1)
