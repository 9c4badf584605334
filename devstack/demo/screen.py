"""Display of the demo: lag per partition, the growing island and the answer to KEDA, live or line by line."""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType
from typing import Any, Self

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from devstack.clients import KedaAnswer

_BLOCKS = " ▁▂▃▄▅▆▇█"
_HISTORY = 60
_STYLE = {"sustained": "bold red", "calm": "bold green", "unknown": "bold yellow"}


class Screen:
    """Redraws itself in a terminal; elsewhere it writes a line whenever something changed."""

    def __init__(self, console: Console, threshold: int, sustain_seconds: float) -> None:
        self._console = console
        self._threshold, self._sustain = threshold, sustain_seconds
        self._live = Live(console=console, refresh_per_second=4, transient=False) if console.is_terminal else None
        self._began = time.monotonic()
        self._totals: deque[int] = deque([0] * _HISTORY, maxlen=_HISTORY)
        self._last_line = ""
        self._events: deque[str] = deque(maxlen=6)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def event(self, text: str) -> None:
        """Something that the demo did."""
        line = f"{time.monotonic() - self._began:5.1f} s  {text}"
        self._events.append(line)
        if self._live is None:
            self._console.print(line, highlight=False)

    def show(self, step: str, round_: dict[str, Any] | None, verdict: dict[str, Any], answer: KedaAnswer) -> None:
        """One look at everything."""
        lags = {one["partition"]: one["lag"] for one in round_["partitions"]} if round_ else {}
        self._totals.append(sum(lags.values()))
        if self._live is not None:
            self._live.update(self._layout(step, lags, verdict, answer))
            return
        line = (
            f"{verdict['verdict']:9}  lag {sum(lags.values()):5}  KEDA: {_format_answer(answer)}  {verdict['sentence']}"
        )
        if line != self._last_line:
            self._console.print(f"{time.monotonic() - self._began:5.1f} s  {line}", highlight=False, soft_wrap=True)
            self._last_line = line

    def _layout(self, step: str, lags: dict[int, int], verdict: dict[str, Any], answer: KedaAnswer) -> RenderableType:
        elapsed = f"{time.monotonic() - self._began:.0f} s"
        style = _STYLE[verdict["verdict"]]
        judged = Text.assemble((verdict["verdict"].upper(), style), "  ", verdict["sentence"])
        return Group(
            Panel(Text(step, style="bold"), title="Lagscale", subtitle=elapsed),
            Columns([self._lag_panel(lags), self._keda_panel(answer)], expand=True, equal=True),
            Panel(Group(self._island(verdict), judged), title="verdict"),
            Text("\n".join(self._events), style="dim"),
        )

    def _lag_panel(self, lags: dict[int, int]) -> Panel:
        greatest = max([*lags.values(), self._threshold * 2])
        table = Table(show_header=False, box=None, padding=(0, 1))
        for partition, lag in sorted(lags.items()):
            color = "red" if lag > self._threshold else "green"
            table.add_row(f"orders/{partition}", ProgressBar(greatest, lag, width=22, complete_style=color), f"{lag}")
        peak = max([*self._totals, 1])
        line = "".join(_BLOCKS[min(8, -(-total * 8 // peak))] for total in list(self._totals)[-40:])
        return Panel(Group(table, Text(f"total {line} {self._totals[-1]}")), title="lag, newest round")

    def _keda_panel(self, answer: KedaAnswer) -> Panel:
        table = Table(show_header=False, box=None, padding=(0, 1))
        table.add_row("GetMetricSpec", f"orders, target {self._threshold}")
        if answer.error:
            table.add_row("GetMetrics", Text(answer.error, style="yellow"))
        else:
            table.add_row("GetMetrics", Text(f"{answer.value:g}", style="bold"))
            table.add_row("IsActive", Text(str(answer.active).lower(), style="bold"))
        return Panel(table, title="answer to KEDA (gRPC)")

    def _island(self, verdict: dict[str, Any]) -> RenderableType:
        island = verdict.get("island")
        span = island["durationSeconds"] if island else 0.0
        table = Table(show_header=False, box=None, padding=(0, 1))
        color = "red" if span >= self._sustain else "yellow"
        table.add_row(
            "island", ProgressBar(self._sustain, min(span, self._sustain), width=40, complete_style=color),
            f"{span:.0f} of {self._sustain:.0f} s above {self._threshold}",
        )  # fmt: skip
        return table


def _format_answer(answer: KedaAnswer) -> str:
    return answer.error or f"value {answer.value:g}, {'active' if answer.active else 'inactive'}"
