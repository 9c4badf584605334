"""How good the estimate of time lag is, by the rate of a steady producer, and how wide its bounds are.

`python -m tests.bench.timelag`; simulated time, so the figures are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median, quantiles

from rich.console import Console
from rich.table import Table

from lagscale.domain.lag.time_lag import compute_time_lag
from tests.fuzz.timelag_cases import MS, PRODUCERS, Case, case

CASES = 4_000
RATES = (0.5, 1, 2, 5, 10, 50, 500)


def main() -> None:
    """Print the table."""
    table = Table(title=f"time lag, {CASES:,} cases each; errors and widths in parts of the interval")
    for column in ("producer", "cases", "median error", "95 % below", "width, median", "width, 95 % below"):
        table.add_column(column, justify="left" if column == "producer" else "right")
    for rate in RATES:
        table.add_row(f"steady, {rate:g} an interval", *_figures(case(n, "steady", rate) for n in range(CASES)))
    for kind in PRODUCERS:
        table.add_row(f"{kind}, any rate", *_figures(case(n, kind) for n in range(CASES)))
    Console(width=120).print(table)


def _figures(cases: Iterable[Case]) -> Sequence[str]:
    errors, widths = [], []
    for one in cases:
        found = compute_time_lag(one.ends, one.position)
        whole = one.numbers == tuple(range(one.numbers[0], one.numbers[0] + len(one.numbers)))
        # Where nothing waits there is nothing to estimate, and a hole is as wide as it is.
        if found is None or found.upper_ms is None or one.position >= one.ends[-1].end or not whole:
            continue
        errors.append(abs(found.estimate_ms * MS - one.truth) / one.interval)
        widths.append((found.upper_ms - found.lower_ms) * MS / one.interval)
    figures = (median(errors), quantiles(errors, n=20)[-1], median(widths), quantiles(widths, n=20)[-1])
    return [f"{len(errors):,}", *(f"{figure:.3f}" for figure in figures)]


if __name__ == "__main__":
    main()
