"""A bar for many objects: on standard error, and only where that is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

#: Fewer are done before a bar could be read.
_MANY = 20


@contextmanager
def show_progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """Show how far it is.

    Args:
        what: is being done, as in "applying".
        total: how many objects.

    Yields:
        what to call after each object; from any thread.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    hidden = total < _MANY or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)
