"""Draws one judged history as a small SVG: lag over time, the threshold, islands, and what each sample says.

Plain text with fixed places, so that the same history always gives the same file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import TypeVar

Text = TypeVar("Text")

WIDTH, HEIGHT = 820, 330
LEFT, RIGHT = 84, 14
TOP, BOTTOM = 62, 206
ROW = 24
INK, FAINT, LINE, TOLD = "#24292f", "#8c959f", "#57606a", "#0969da"
#: Of verdicts and of activity.
FILLS = {"sustained": "#f2b8a0", "calm": "#cfe8cf", "unknown": "#e1e4e8", "yes": "#fff0b8", "no": "#ffffff"}
#: An estimate of how wide a letter of a row is, pixels.
LETTER = 5.8


@dataclass(frozen=True, slots=True)
class Dot:
    """One sample: seconds, and its lag in messages."""

    at: float
    lag: int


@dataclass(frozen=True, slots=True)
class Shade:
    """One island: from its first to its last breach, seconds; open when nobody knows when it began."""

    since: float
    until: float
    bounded: bool


@dataclass(frozen=True, slots=True)
class Hole:
    """Two neighboring samples too far apart, and what the lag was provably never below between them, messages."""

    since: float
    until: float
    bound: int
    bridged: bool


@dataclass(frozen=True, slots=True)
class Cell:
    """What is said at one instant, by row: verdict, value, active. A longer and a shorter text for the verdict."""

    at: float
    verdict: str
    because: str
    value: float | None
    active: bool | None


@dataclass(frozen=True, slots=True)
class Drawing:
    """Everything that one picture shows. Times are seconds, `step` the time between two cells."""

    title: str
    under: str
    threshold: int
    step: int
    dots: Sequence[Dot]
    shades: Sequence[Shade]
    holes: Sequence[Hole]
    cells: Sequence[Cell]
    shows_value: bool


class _Canvas:
    """Where seconds and messages lie on the picture."""

    def __init__(self, drawing: Drawing) -> None:
        self.first = drawing.cells[0].at - drawing.step / 2
        self.last = drawing.cells[-1].at + drawing.step / 2
        self.most = max(1.15 * max(dot.lag for dot in drawing.dots), 1.5 * drawing.threshold)

    def x(self, at: float) -> float:
        return LEFT + (at - self.first) / (self.last - self.first) * (WIDTH - LEFT - RIGHT)

    def y(self, lag: float) -> float:
        return BOTTOM - lag / self.most * (BOTTOM - TOP)


def svg(drawing: Drawing) -> str:
    """The picture as text."""
    canvas = _Canvas(drawing)
    parts = [
        *_head(drawing),
        *_islands(drawing, canvas),
        *_axes(drawing, canvas),
        *_holes(drawing, canvas),
        *_lags(drawing, canvas),
        *_rows(drawing, canvas),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _head(drawing: Drawing) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'role="img" font-family="Helvetica, Arial, sans-serif" font-size="11" fill="{INK}">'
    )
    yield f"<title>{escape(drawing.title)}</title>"
    yield (
        '<defs><pattern id="open" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<rect width="8" height="8" fill="#fdf3e0"/><rect width="3" height="8" fill="#f4d8a8"/></pattern></defs>'
    )
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    yield f'<text x="{LEFT}" y="20" font-size="14" font-weight="bold">{escape(drawing.title)}</text>'
    yield f'<text x="{LEFT}" y="37" fill="{LINE}">{escape(drawing.under)}</text>'


def _islands(drawing: Drawing, canvas: _Canvas) -> Iterator[str]:
    for shade in drawing.shades:
        x, width = canvas.x(shade.since), max(canvas.x(shade.until) - canvas.x(shade.since), 3)
        fill = "#fbe3b6" if shade.bounded else "url(#open)"
        yield _rect(x, TOP, width, BOTTOM - TOP, fill)
        dash = "" if shade.bounded else ' stroke-dasharray="3 3"'
        yield f'<path d="M{_n(x)} {TOP - 4}V{BOTTOM}" stroke="#bf8700" stroke-width="1.5"{dash}/>'
        kind = "island" if shade.bounded else "open island"
        yield _text(x + 4, TOP - 5, f"{kind}, span {shade.until - shade.since:g} s", fill="#7d4e00")


def _axes(drawing: Drawing, canvas: _Canvas) -> Iterator[str]:
    edge = WIDTH - RIGHT
    yield f'<path d="M{LEFT} {TOP}V{BOTTOM}H{edge}" fill="none" stroke="{FAINT}"/>'
    y = canvas.y(drawing.threshold)
    yield f'<path d="M{LEFT} {_n(y)}H{edge}" stroke="#cf222e" stroke-dasharray="6 4"/>'
    yield _text(LEFT - 6, y + 4, f"> {drawing.threshold:,}", anchor="end", fill="#cf222e")
    top = max(dot.lag for dot in drawing.dots)
    if canvas.y(drawing.threshold) - canvas.y(top) > 12:
        yield _text(LEFT - 6, canvas.y(top) + 4, f"{top:,}", anchor="end")
    if BOTTOM - y > 12:
        yield _text(LEFT - 6, BOTTOM + 4, "0", anchor="end")
    yield _text(LEFT - 6, TOP - 5, "lag", anchor="end", fill=LINE)
    for cell in drawing.cells:
        if cell.at % 60 == 0:
            x = canvas.x(cell.at)
            yield f'<path d="M{_n(x)} {BOTTOM}v5" stroke="{FAINT}"/>'
            yield _text(x, BOTTOM + 17, f"{cell.at:g} s", anchor="middle", fill=LINE)


def _holes(drawing: Drawing, canvas: _Canvas) -> Iterator[str]:
    for hole in drawing.holes:
        x, y = canvas.x(hole.since), canvas.y(max(hole.bound, 0))
        color = "#1a7f37" if hole.bridged else FAINT
        yield f'<path d="M{_n(x)} {_n(y)}H{_n(canvas.x(hole.until))}" stroke="{color}" stroke-width="3"/>'
        text = f"never below {hole.bound:,}" if hole.bound > 0 else "may have been 0"
        yield _text((x + canvas.x(hole.until)) / 2, y - 6 if hole.bound <= 0 else y + 15, text, "middle", color)


def _lags(drawing: Drawing, canvas: _Canvas) -> Iterator[str]:
    runs: list[list[Dot]] = []
    torn = {hole.until for hole in drawing.holes}
    for dot in drawing.dots:
        if not runs or dot.at in torn:
            runs.append([])
        runs[-1].append(dot)
    for run in runs:
        points = " ".join(f"{_n(canvas.x(dot.at))},{_n(canvas.y(dot.lag))}" for dot in run)
        yield f'<polyline points="{points}" fill="none" stroke="{LINE}" stroke-width="1.2"/>'
    if drawing.shows_value:
        yield from _told(drawing, canvas)
    for dot in drawing.dots:
        breach = dot.lag > drawing.threshold
        fill = "#cf222e" if breach else "#ffffff"
        yield (
            f'<circle cx="{_n(canvas.x(dot.at))}" cy="{_n(canvas.y(dot.lag))}" r="3.5" fill="{fill}" '
            f'stroke="{"#cf222e" if breach else LINE}"/>'
        )


def _told(drawing: Drawing, canvas: _Canvas) -> Iterator[str]:
    """The value, as steps: each answer stands until the next one."""
    path = ""
    for cell in drawing.cells:
        if cell.value is not None:
            x, y = canvas.x(cell.at), canvas.y(cell.value)
            path += f"M{_n(x)} {_n(y)}" if not path else f"H{_n(x)}V{_n(y)}"
    yield f'<path d="{path}" fill="none" stroke="{TOLD}" stroke-width="2.5"/>'


def _rows(drawing: Drawing, canvas: _Canvas) -> Iterator[str]:
    values = [("?" if cell.value is None else f"{cell.value:,.0f}") for cell in drawing.cells]
    active = [{None: "?", True: "yes", False: "no"}[cell.active] for cell in drawing.cells]
    verdicts = [(cell.verdict, cell.because) for cell in drawing.cells]
    top = BOTTOM + 32
    for name, texts, y in (("value", values, top + ROW), ("active", active, top + 2 * ROW)):
        color = TOLD if name == "value" and drawing.shows_value else INK
        yield _text(LEFT - 6, y + 16, name, anchor="end", fill=color)
        for text, x, width in _runs(texts, canvas, drawing.cells, drawing.step):
            yield _rect(x, y, width, ROW, FILLS.get(text, "#ffffff" if text != "?" else FILLS["unknown"]), stroke=FAINT)
            yield _text(x + width / 2, y + 16, text, "middle", color if text != "?" else LINE)
    yield _text(LEFT - 6, top + 16, "verdict", anchor="end")
    for (verdict, because), x, width in _runs(verdicts, canvas, drawing.cells, drawing.step):
        yield _rect(x, top, width, ROW, FILLS[verdict], stroke=FAINT)
        room = width / LETTER
        whole = f"{verdict}: {because}" if because else verdict
        text = next((text for text in (whole, verdict) if len(text) <= room), verdict[:1])
        yield _text(x + width / 2, top + 16, text, "middle")


def _runs(
    texts: Iterable[Text], canvas: _Canvas, cells: Sequence[Cell], step: float
) -> Iterator[tuple[Text, float, float]]:
    """Neighboring cells of the same text as one: text, left edge, width."""
    for text, group in groupby(zip(texts, cells, strict=True), key=lambda pair: pair[0]):
        run = [cell.at for _, cell in group]
        x = canvas.x(run[0] - step / 2)
        yield text, x, canvas.x(run[-1] + step / 2) - x


def _rect(x: float, y: float, width: float, height: float, fill: str, *, stroke: str = "none") -> str:
    return (
        f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" fill="{fill}" stroke="{stroke}" '
        'stroke-width="0.6"/>'
    )


def _text(x: float, y: float, text: str, anchor: str = "start", fill: str = INK) -> str:
    return f'<text x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}" fill="{fill}">{escape(text)}</text>'


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
