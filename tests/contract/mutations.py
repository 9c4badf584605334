"""Breaks the verdict's SQL on purpose and checks that a wrong answer, not a text, shows each break.

`python -m tests.contract.mutations` starts a database, prints a table and fails on a survivor.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from unittest import mock

from devstack.database import Database
from lagscale.domain.verdict.contract import Answer, Judgment
from lagscale.store import connection, queries
from lagscale.store.verdicts import judge
from tests.conftest import migrate
from tests.contract.breakages import BREAKAGES, Breakage
from tests.contract.comparison import Asked, Difference, find_wrong_judgments, find_wrong_last_known, prepare
from tests.contract.database import Stored, stored
from tests.contract.random_histories import random_history
from tests.contract.random_waits import random_waits
from tests.contract.table import CASES

#: Numbered histories first, then random ones.
SEEDS = range(100_000, 103_000)
_BATCH = 100
#: The statement of which only last-known answers depend: when past verdicts can have changed.
LAST_KNOWN = "sample_times"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The first wrong answer under one break, or none."""

    breakage: Breakage
    caught: Difference | None


def prepare_all(samples: Stored, seeds: Iterable[int] = SEEDS) -> list[Asked]:
    """Store the histories that every break is tried on."""
    histories = [case.judged() for case in CASES] + [random_history(Random(seed)) for seed in seeds]
    # Every other one once more by time, which few of them are otherwise.
    histories += [random_history(Random(seed), by_time=True) for seed in list(seeds)[::2]]
    histories += [random_waits(Random(seed)) for seed in list(seeds)[::2]]
    return prepare(samples, histories)


@contextmanager
def broken(breakage: Breakage) -> Iterator[None]:
    """The statements with one slip.

    Raises:
        ValueError: its text does not occur exactly once.
    """
    text = queries.read(breakage.statement)
    if text.count(breakage.old) != 1:
        raise ValueError(f"{breakage.name}: its text occurs {text.count(breakage.old)} times in {breakage.statement}")
    with replaced(breakage.statement, text.replace(breakage.old, breakage.new)):
        yield


@contextmanager
def replaced(statement: str, slipped: str) -> Iterator[None]:
    """The statements with another text of one of them, or of a part."""

    def load(name: str) -> str:
        return queries.compose(name, lambda one: slipped if one == statement else queries.read(one), check=False)

    with mock.patch.object(judge, "load", load), mock.patch.object(connection, "load", load):
        yield


async def first_wrong(samples: Stored, asked: Sequence[Asked], breakage: Breakage | None) -> Difference | None:
    """The first answer that differs from the reference."""
    ways = ("judge_full",) if breakage is not None and breakage.statement == "judge_full" else samples.WAYS
    for start in range(0, len(asked), _BATCH):
        batch = asked[start : start + _BATCH]
        if breakage is not None and breakage.statement == LAST_KNOWN:
            found = await find_wrong_last_known(samples, batch)
        else:
            found = await find_wrong_judgments(samples, batch, ways)
        if found:
            return found[0]
    return None


async def try_all(samples: Stored, asked: Sequence[Asked], breakages: Sequence[Breakage] = BREAKAGES) -> list[Outcome]:
    """Every break on the same histories."""
    outcomes = []
    for breakage in breakages:
        with broken(breakage):
            outcomes.append(Outcome(breakage, await first_wrong(samples, asked, breakage)))
    return outcomes


async def _run(url: str) -> int:
    async with stored(url) as samples:
        asked = prepare_all(samples)
        whole = await first_wrong(samples, asked, None)
        if whole is not None:
            print(f"The SQL is wrong already:\n{whole}")
            return 1
        survivors = 0
        for breakage in BREAKAGES:
            (outcome,) = await try_all(samples, asked, [breakage])
            survivors += outcome.caught is None
            print(f"{breakage.statement:<10}  {breakage.name:<55}  {_format_difference(outcome.caught)}", flush=True)
    print(f"{len(BREAKAGES)} breaks, {survivors} not caught")
    return 1 if survivors else 0


def _format_difference(found: Difference | None) -> str:
    if found is None:
        return "NOT CAUGHT"
    if found.way == "hold":
        return f"last known {_answer(found.store)} for {_answer(found.reference)}"
    differ = [
        f"{name} {getattr(found.store, name)} for {getattr(found.reference, name)}"
        for name in ("reason", "value", "active", "activates_from_zero", "missing", "total", "members")
        if getattr(found.reference, name) != getattr(found.store, name)
    ]
    return differ[0] if differ else "another island"


def _answer(held: Judgment | Answer | None) -> str:
    return f"{held.value:g} since {held.last_known_ms}" if isinstance(held, Answer) else "nothing"


def main() -> int:
    """Run all of it on a database of its own."""
    with Database() as server:
        url = server.create_database("mutations")
        migrate(url)
        return asyncio.run(_run(url))


if __name__ == "__main__":
    sys.exit(main())
