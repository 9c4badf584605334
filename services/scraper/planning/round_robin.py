"""Whose turn it is: one of each tenant, then the next of each. Pure; who shares something scarce among tenants calls it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import zip_longest
from typing import TypeVar

Item = TypeVar("Item")
Owner = TypeVar("Owner", bound=Hashable)


def interleave(items: Iterable[Item], owner: Callable[[Item], Owner]) -> list[Item]:
    """The items in turns of their owners; an owner's own keep their order, and whose first comes first begins."""
    queues: dict[Owner, list[Item]] = {}
    for item in items:
        queues.setdefault(owner(item), []).append(item)
    missing = object()
    return [item for row in zip_longest(*queues.values(), fillvalue=missing) for item in row if item is not missing]  # type: ignore[misc]
