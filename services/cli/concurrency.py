"""Many requests: several at once, each with its own result, and an end when nothing can succeed any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from lagscale.errors import LagscaleError, NotAuthenticated, StoreUnavailable

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Requests at once: the API serves one caller beside others.
AT_ONCE = 4
#: After one of these the next request would meet the same.
HOPELESS = (NotAuthenticated, StoreUnavailable)


class NotTried(LagscaleError):
    """It was not tried: something that it needs went wrong before."""


def several(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    told: Callable[[Item, Result | LagscaleError], None],
    at_once: int = AT_ONCE,
) -> list[Result | LagscaleError]:
    """Results and errors, in the order of the items. What cannot succeed any more is not begun.

    Args:
        work: makes the requests of one item.
        items: what is to be done.
        told: is called with each result as soon as it is known, from several threads.
        at_once: how many are worked on at the same time.
    """
    hopeless: list[LagscaleError] = []

    def attempt(item: Item) -> Result | LagscaleError:
        if hopeless:
            return NotTried(f"was not tried any more: {hopeless[0].message}")
        try:
            return work(item)
        except LagscaleError as wrong:
            if isinstance(wrong, HOPELESS):
                hopeless.append(wrong)
            return wrong

    def run(item: Item) -> Result | LagscaleError:
        result = attempt(item)
        told(item, result)
        return result

    pool = ThreadPoolExecutor(at_once, thread_name_prefix="request")
    try:
        return list(pool.map(run, items))
    except KeyboardInterrupt:
        hopeless.append(LagscaleError("interrupted"))
        raise
    finally:
        # What has begun is waited for, so that its outcome is told.
        pool.shutdown(cancel_futures=True)
