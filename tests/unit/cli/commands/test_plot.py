"""Plots: bars in eighths of a line, the threshold, gaps and dips."""

from __future__ import annotations

from services.cli.commands.plot import PlotFrame, PlotPoint, draw_plot


def test_a_plot_shows_threshold_gaps_and_dips() -> None:
    points = [
        PlotPoint(0, 100, 100),
        PlotPoint(10_000, 900, 900),
        PlotPoint(20_000, 900, 300),
        PlotPoint(60_000, 900, 900),
    ]
    lines = [line.plain for line in draw_plot(points, 500, PlotFrame(0, 100_000, 20_000), 26, 8)]
    assert len(lines) == 8
    assert lines[0].startswith("900 ┤")
    (threshold,) = [line for line in lines if line.startswith("500 ┤")]
    bars = threshold[5:]
    assert "╌" in bars[:2]
    assert "░" in bars
    # The sample at 20 s stands for 20 s; then nothing is known until the next.
    assert set(bars[10:12]) == {"╌"}
    assert bars[12] == "█"


def test_some_lag_is_never_drawn_as_none() -> None:
    lines = draw_plot([PlotPoint(0, 1, 1)], 500, PlotFrame(0, 10, 10), 20, 4)
    assert "▁" in lines[-1].plain
