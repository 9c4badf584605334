"""Whose turn it is: one of each tenant, then the next of each. Pure; who shares something scarce among tenants calls it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import zip_longest
from typing import TypeVar

Item = TypeVar("Item")
Owner = TypeVar("Owner", bound=Hashable)


def in_turn(items: Iterable[Item], owner: Callable[[Item], Owner]) -> list[Item]:
    """The items in turns of their owners; an owner's own keep their order, and whose first comes first begins."""
    lines: dict[Owner, list[Item]] = {}
    for item in items:
        lines.setdefault(owner(item), []).append(item)
    missing = object()
    return [item for turn in zip_longest(*lines.values(), fillvalue=missing) for item in turn if item is not missing]  # type: ignore[misc]
