"""Many requests: several at once, each with its own result, and an end when nothing can succeed any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from lagscale.errors import LagscaleError, NotAuthenticated, StoreUnavailable

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Requests at once: the API serves one caller beside others.
MAX_CONCURRENT = 4
#: After one of these the next request would meet the same.
FATAL_ERRORS = (NotAuthenticated, StoreUnavailable)


class Skipped(LagscaleError):
    """It was not tried: something that it needs went wrong before."""


def run_concurrently(
    call: Callable[[Item], Result],
    items: Sequence[Item],
    on_result: Callable[[Item, Result | LagscaleError], None],
    max_concurrent: int = MAX_CONCURRENT,
) -> list[Result | LagscaleError]:
    """Results and errors, in the order of the items. What cannot succeed any more is not begun.

    Args:
        call: makes the requests of one item.
        items: what is to be done.
        on_result: is called with each result as soon as it is known, from several threads.
        max_concurrent: how many are worked on at the same time.
    """
    fatal: list[LagscaleError] = []

    def attempt(item: Item) -> Result | LagscaleError:
        if fatal:
            return Skipped(f"was not tried any more: {fatal[0].message}")
        try:
            return call(item)
        except LagscaleError as wrong:
            if isinstance(wrong, FATAL_ERRORS):
                fatal.append(wrong)
            return wrong

    def run(item: Item) -> Result | LagscaleError:
        result = attempt(item)
        on_result(item, result)
        return result

    pool = ThreadPoolExecutor(max_concurrent, thread_name_prefix="request")
    try:
        return list(pool.map(run, items))
    except KeyboardInterrupt:
        fatal.append(LagscaleError("interrupted"))
        raise
    finally:
        # What has begun is waited for, so that its outcome is told.
        pool.shutdown(cancel_futures=True)
