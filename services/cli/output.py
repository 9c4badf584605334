"""What the commands share: TENANT/MONITOR arguments, times, numbers, YAML and progress bars in one form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import StringIO
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from ruamel.yaml import YAML

from lagscale.clock import to_ms
from lagscale.domain.tenancy import is_name
from lagscale.errors import InvalidInput

MonitorArgument = Annotated[str, typer.Argument(metavar="TENANT/MONITOR", help="The monitor.")]
ApiJson = Annotated[bool, typer.Option("--json", help="Print the API response as JSON.")]
#: Of a verdict -> its style in a terminal.
VERDICT_STYLES: Final = {"sustained": "bold red", "calm": "bold green", "unknown": "bold yellow"}
#: Fewer objects are done before a bar could be read.
_MIN_OBJECTS = 20


def parse_monitor_argument(text: str) -> tuple[str, str]:
    """Tenant and monitor of TENANT/MONITOR.

    Raises:
        InvalidInput: the text has another form.
    """
    tenant, _, monitor = text.partition("/")
    if not is_name(tenant) or not is_name(monitor):
        raise InvalidInput.of("TENANT/MONITOR", "expected TENANT/MONITOR, for example shop/ingest-logs")
    return tenant, monitor


def build_monitor_path(text: str) -> str:
    """The REST path of the monitor that TENANT/MONITOR names.

    Raises:
        InvalidInput: the text has another form.
    """
    tenant, monitor = parse_monitor_argument(text)
    return f"/v1/tenants/{tenant}/monitors/{monitor}"


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    typer.echo(json.dumps(value, indent=2))


def dump_yaml(documents: Iterable[Any], *, width: int = 4096, explicit_start: bool = False) -> str:
    """Documents as YAML, separated by `---`; comments of a round trip stay.

    Lines longer than `width` are folded; with `explicit_start` the first document begins with `---` too.
    """
    yaml = YAML(typ="rt")
    yaml.width = width
    yaml.indent(mapping=2, sequence=4, offset=2)
    parts = []
    for document in documents:
        out = StringIO()
        yaml.dump(document, out)
        parts.append(out.getvalue())
    return ("---\n" if explicit_start and parts else "") + "---\n".join(parts)


def parse_time(text: str) -> datetime:
    """A timestamp of the API, in UTC."""
    return datetime.fromisoformat(text).astimezone(UTC)


def parse_time_ms(text: str) -> int:
    """A timestamp of the API in milliseconds since 1970."""
    return to_ms(parse_time(text))


def format_clock(text: str) -> str:
    """The time of day of a timestamp of the API, in UTC."""
    return f"{parse_time(text):%H:%M:%S}"


def format_short(number: float) -> str:
    """A number of at most five characters: 950, 1.2k, 35M."""
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            scaled = number / size
            return f"{scaled:.{1 if scaled < 100 else 0}f}".removesuffix(".0") + unit
    return f"{number:.0f}"


def format_number(value: float) -> str:
    """A number with thousands separated and at most 3 decimals; from 1e9 in the short form."""
    return f"{value:,.3f}".rstrip("0").rstrip(".") if value < 1e9 else format_short(value)


def format_optional(value: object) -> str:
    """A value, or `unknown`."""
    return "unknown" if value is None else str(value)


def format_duration(seconds: float) -> str:
    """A duration in the unit that suits it: 4.2 s, 130 s, 12 min, 3.5 h."""
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    if seconds < 600:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


@contextmanager
def show_progress(task_name: str, total: int) -> Iterator[Callable[[], None]]:
    """Show a progress bar for many objects: on standard error, and only if that is a terminal.

    Yields:
        a function to call after each object, from any thread.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    hidden = total < _MIN_OBJECTS or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task(task_name, total=total)
        yield lambda: bar.advance(task)
