"""A plot of lag in a terminal: bars in eighths of a line, with the threshold through them. Pure; `explain` prints it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.text import Text

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_DIPPED = "░"
_LINE = "╌"
_ABOVE, _BELOW, _THRESHOLD = "red", "green", "yellow"


@dataclass(frozen=True, slots=True)
class Point:
    """Lag from an instant on, messages; `least` is what it fell to within the step."""

    at_ms: int
    lag: float
    least: float


@dataclass(frozen=True, slots=True)
class Frame:
    """What the plot shows: from and until, and for how long a point stands when no other follows."""

    begin_ms: int
    end_ms: int
    gap_ms: int

    def column(self, at_ms: int, width: int) -> int:
        """The column of an instant."""
        span = max(self.end_ms - self.begin_ms, 1)
        return min(width - 1, max(0, (at_ms - self.begin_ms) * width // span))

    def until(self, column: int, width: int) -> int:
        """The instant at which a column ends."""
        return self.begin_ms + (self.end_ms - self.begin_ms) * (column + 1) // width


def plot(
    points: Sequence[Point], threshold: float | None, frame: Frame, width: int, height: int = 8, *, top: float = 1.0
) -> list[Text]:
    """Lines of a plot, the highest first; a column without a sample is empty.

    Args:
        points: the oldest first.
        threshold: drawn as a line; what is above it is red, and light where the lag fell to it within the column.
            None where it does not count messages.
        frame: from left to right.
        width, height: characters, the numbers beside the axis included in the width.
        top: the least number that the highest line stands for; two plots with the same one can be compared.
    """
    greatest = max([point.lag for point in points] + [(threshold or 0.0) * 1.25, top])
    labels = {height - 1: short(greatest), 0: "0"}
    level = height
    if threshold is not None:
        level = min(height - 1, int(threshold / greatest * height))
        labels[level] = short(threshold)
    margin = max(len(label) for label in labels.values())
    columns = _columns(points, frame, width - margin - 2)
    lines = []
    for row in range(height - 1, -1, -1):
        cells = [_cell(found, row, level, threshold or 0.0, greatest / height) for found in columns]
        axis = "┤" if row in labels else "│"
        lines.append(Text.assemble((f"{labels.get(row, ''):>{margin}} {axis}", "dim"), *joined(cells)))
    return lines


def joined(cells: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Neighbouring characters of one style as one piece."""
    for style, group in groupby(cells, key=lambda cell: cell[1]):
        yield "".join(character for character, _ in group), style


def short(number: float) -> str:
    """A number of at most five characters: 950, 1.2k, 35M."""
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            scaled = number / size
            return f"{scaled:.{1 if scaled < 100 else 0}f}".removesuffix(".0") + unit
    return f"{number:.0f}"


def _columns(points: Sequence[Point], frame: Frame, width: int) -> list[Point | None]:
    """What each column shows: the most and the least of its points, or the point before while it stands."""
    found: list[Point | None] = [None] * width
    for point in points:
        column = frame.column(point.at_ms, width)
        known = found[column]
        if known is None:
            found[column] = point
        else:
            found[column] = Point(point.at_ms, max(known.lag, point.lag), min(known.least, point.least))
    standing: Point | None = None
    last: Point | None = None
    for column, here in enumerate(found):
        if here is not None:
            last = max((point for point in points if frame.column(point.at_ms, width) == column), key=_time)
            standing = Point(last.at_ms, last.lag, last.lag)
        elif standing is not None and frame.until(column - 1, width) - standing.at_ms <= frame.gap_ms:
            found[column] = standing
    return found


def _time(point: Point) -> int:
    return point.at_ms


def _cell(point: Point | None, row: int, level: int, threshold: float, step: float) -> tuple[str, str]:
    """One character: the part of the bar that lies in this row, else the threshold's line or nothing."""
    eighths = 0 if point is None else max(0, min(8, round((point.lag - row * step) / step * 8)))
    if point is not None and eighths == 0 and row == 0 and point.lag > 0:
        eighths = 1  # Some lag is never shown as none.
    if eighths == 0 or point is None:
        return (_LINE, _THRESHOLD) if row == level else (" ", "")
    if point.lag <= threshold or row < level:
        return _EIGHTHS[eighths], _BELOW
    return (_DIPPED if point.least <= threshold else _EIGHTHS[eighths]), _ABOVE
