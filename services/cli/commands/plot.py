"""A plot of lag in a terminal: bars in eighths of a line, with the threshold through them. Pure; `explain` and `compare` print it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.text import Text

from services.cli.output import format_short

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_PARTIAL = "░"
_LINE = "╌"
_ABOVE, _BELOW, _THRESHOLD = "red", "green", "yellow"


@dataclass(frozen=True, slots=True)
class PlotPoint:
    """Lag from a point in time on, messages; `lowest` is the lowest value within the step."""

    at_ms: int
    lag: float
    lowest: float


@dataclass(frozen=True, slots=True)
class PlotFrame:
    """Time range of a plot, and for how long a point is drawn if no other follows."""

    begin_ms: int
    end_ms: int
    gap_ms: int

    def column(self, at_ms: int, width: int) -> int:
        """The column of a point in time."""
        span = max(self.end_ms - self.begin_ms, 1)
        return min(width - 1, max(0, (at_ms - self.begin_ms) * width // span))

    def until(self, column: int, width: int) -> int:
        """The time at which a column ends."""
        return self.begin_ms + (self.end_ms - self.begin_ms) * (column + 1) // width


def draw_plot(
    points: Sequence[PlotPoint],
    threshold: float | None,
    frame: PlotFrame,
    width: int,
    height: int = 8,
    *,
    top: float = 1.0,
) -> list[Text]:
    """Lines of a plot, the highest first; a column without a sample is empty.

    Args:
        points: the oldest first.
        threshold: drawn as a line; lag above it is red, and light if the lag fell to it within the column. None if it
            does not count messages.
        frame: from left to right.
        width, height: characters, including the numbers of the axis.
        top: minimum of the highest line; plots with the same one are comparable.
    """
    highest = max([point.lag for point in points] + [(threshold or 0.0) * 1.25, top])
    labels = {height - 1: format_short(highest), 0: "0"}
    level = height
    if threshold is not None:
        level = min(height - 1, int(threshold / highest * height))
        labels[level] = format_short(threshold)
    margin = max(len(label) for label in labels.values())
    columns = _fill_columns(points, frame, width - margin - 2)
    lines = []
    for row in range(height - 1, -1, -1):
        cells = [_draw_cell(point, row, level, threshold or 0.0, highest / height) for point in columns]
        axis = "┤" if row in labels else "│"
        lines.append(Text.assemble((f"{labels.get(row, ''):>{margin}} {axis}", "dim"), *join_cells(cells)))
    return lines


def join_cells(cells: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Adjacent characters of one style joined."""
    for style, group in groupby(cells, key=lambda cell: cell[1]):
        yield "".join(character for character, _ in group), style


def _fill_columns(points: Sequence[PlotPoint], frame: PlotFrame, width: int) -> list[PlotPoint | None]:
    """What each column shows: the highest and lowest of its points, or the previous point while it is valid."""
    by_column = {
        column: list(group) for column, group in groupby(points, key=lambda point: frame.column(point.at_ms, width))
    }
    column_points: list[PlotPoint | None] = []
    carried: PlotPoint | None = None
    for column in range(width):
        if here := by_column.get(column):
            carried = PlotPoint(here[-1].at_ms, here[-1].lag, here[-1].lag)
            lag, lowest = max(point.lag for point in here), min(point.lowest for point in here)
            column_points.append(PlotPoint(carried.at_ms, lag, lowest))
        elif carried is not None and frame.until(column - 1, width) - carried.at_ms <= frame.gap_ms:
            column_points.append(carried)
        else:
            column_points.append(None)
    return column_points


def _draw_cell(point: PlotPoint | None, row: int, level: int, threshold: float, step: float) -> tuple[str, str]:
    """One character: the part of the bar that lies in this row, else the threshold's line or a space."""
    eighths = 0 if point is None else max(0, min(8, round((point.lag - row * step) / step * 8)))
    if point is not None and eighths == 0 and row == 0 and point.lag > 0:
        eighths = 1  # Lag above 0 is always visible.
    if eighths == 0 or point is None:
        return (_LINE, _THRESHOLD) if row == level else (" ", "")
    if point.lag <= threshold or row < level:
        return _EIGHTHS[eighths], _BELOW
    return (_PARTIAL if point.lowest <= threshold else _EIGHTHS[eighths]), _ABOVE
