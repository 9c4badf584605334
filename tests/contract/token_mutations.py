"""Every single-token mutant of the verdict's SQL, tried on the numbered histories and on random ones.

`python -m tests.contract.token_mutations [STATEMENT ...]` starts a database and prints the mutants that no wrong
answer tells of; it fails on one of which SURVIVORS.md does not say why. It takes about half an hour.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg
import psycopg_pool

from devstack.database import Database
from lagscale.store.queries import CONSTANTS, read
from lagscale.store.verdicts import judge
from tests.conftest import migrate
from tests.contract.comparison import Asked, judged_otherwise
from tests.contract.database import Stored, stored
from tests.contract.mutations import SEEDS, prepare_all, replaced

#: Statement or part -> the ways through the store that read it; what is quicker comes first.
STATEMENTS = {
    "part_gate": ("judge_gate", "judge_fast"),
    "judge_gate": ("judge_gate",),
    "judge_fast": ("judge_fast",),
    "part_capped": ("judge_full", "judge_fast"),
    "part_asks": ("judge_full", "judge_fast"),
    "part_stuck": ("judge_full",),
    "part_recovering": ("judge_full",),
    "part_maybe_stuck": ("judge_fast", "judge_time"),
    "part_time_lags": ("judge_full",),
    "part_bounds": ("judge_full", "judge_time"),
    "judge_time": ("judge_time",),
    "judge_full": ("judge_full",),
}
OTHERS = {
    "<": ("<=", ">"),
    "<=": ("<", ">="),
    ">": (">=", "<"),
    ">=": (">", "<="),
    "=": ("<>",),
    "<>": ("=",),
    "+": ("-",),
    "-": ("+",),
    "and": ("or",),
    "or": ("and",),
    "not": ("",),
    "true": ("false",),
    "false": ("true",),
    "min": ("max",),
    "max": ("min",),
    "least": ("greatest",),
    "greatest": ("least",),
    "bool_and": ("bool_or",),
    "bool_or": ("bool_and",),
    "desc": ("asc",),
    "asc": ("desc",),
    "first": ("last",),
    "is null": ("is not null",),
    "is not null": ("is null",),
}
#: Comments and texts are passed over; what is found in them is no token.
_TOKEN = re.compile(
    r"(?P<skipped>--[^\n]*|'[^']*'|%\(\w+\)s)"
    r"|(?P<slot>:[a-z]+\.[A-Z_]+)"
    r"|(?P<word>\bis (?:not )?null\b|\b(?:and|or|not|true|false|min|max|least|greatest|bool_and|bool_or|desc|asc|first)\b)"
    r"|(?P<number>(?<![\w.])\d+(?![\w.]))"
    r"|(?P<operator><>|<=|>=|<|>|=|(?<=\s)[+-](?=\s))"
)
_BATCH = 100
#: A statement that is ended for its time so often reads far too much.
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Mutant:
    """One token of one statement replaced; `name` says where by the line's words, for its number changes."""

    statement: str
    name: str
    text: str

    def __str__(self) -> str:
        return self.name


def mutants(statement: str) -> Iterator[Mutant]:
    """All of one statement, in its order."""
    text = read(statement)
    named: Counter[str] = Counter()
    for found in _TOKEN.finditer(text):
        old = found[0]
        if found["skipped"]:
            continue
        begin, end = text.rfind("\n", 0, found.start()) + 1, text.index("\n", found.end())
        for new in _others(found):
            where = f"at {found.start() - begin + 1}  |  {text[begin:end].strip()}"
            name = f"{statement}  {old} -> {new or 'nothing'} {where}"
            named[name] += 1
            again = f"  (line {named[name]} of these words)" if named[name] > 1 else ""
            yield Mutant(statement, name + again, text[: found.start()] + new + text[found.end() :])


def _others(found: re.Match[str]) -> Sequence[str]:
    """What stands in the place of a token: a flag's neighbors in its enumeration, a number's neighbors, or `OTHERS`."""
    if not found["slot"]:
        return (str(int(found[0]) + 1), str(int(found[0]) - 1)) if found["number"] else OTHERS[found[0]]
    group, name = found[0][1:].split(".")
    if group == "limit":
        value = int(CONSTANTS[group][name])
        return (str(value + 1), str(value - 1))
    names = [*CONSTANTS[group]]
    at = names.index(name)
    return [f":{group}.{other}" for other in dict.fromkeys((names[at - 1], names[(at + 1) % len(names)]))]


class Trial:
    """The histories, what the reference says of them, and which of them each whole statement leaves undecided."""

    def __init__(self, samples: Stored, asked: Sequence[Asked]) -> None:
        self._samples = samples
        self._batches = [asked[start : start + _BATCH] for start in range(0, len(asked), _BATCH)]
        self._left: dict[tuple[str, int], frozenset[int]] = {}

    async def begin(self) -> None:
        """See what the whole statements leave undecided."""
        for way in ("judge_gate", "judge_fast", "judge_time"):
            for number in range(len(self._batches)):
                self._left[way, number] = await self._undecided(number, way)

    async def catches(self, mutant: Mutant) -> bool:
        """Whether an answer is wrong, or none comes, or a statement leaves to the next one what it could decide."""
        with replaced(mutant.statement, mutant.text):
            for number in range(len(self._batches)):
                for way in STATEMENTS[mutant.statement]:
                    if await self._is_caught(number, way):
                        return True
        return False

    async def _is_caught(self, number: int, way: str) -> bool:
        for _ in range(_ATTEMPTS):
            try:
                if await judged_otherwise(self._samples, self._batches[number], [way]):
                    return True
                wanted = self._left.get((way, number))
                return wanted is not None and await self._undecided(number, way) != wanted
            except (psycopg.errors.QueryCanceled, psycopg_pool.PoolTimeout):
                # The machine may be slow this once.
                continue
            except (psycopg.Error, ValueError, LookupError, TypeError):
                return True
        return True

    async def _undecided(self, number: int, way: str) -> frozenset[int]:
        requests = {n: one.request for n, one in enumerate(self._batches[number])}
        async with self._samples.pool.connection() as connection:
            rows = await judge._run(connection, way, requests)
        return frozenset(row["ask"] for row in rows if row["verdict"] == "undecided")


def explained() -> frozenset[str]:
    """The lines of what is written of survivors; a mutant is explained where one of them is its name."""
    return frozenset(Path(__file__).with_name("SURVIVORS.md").read_text(encoding="utf-8").splitlines())


async def _run(url: str, statements: Sequence[str], seeds: range, only: frozenset[str]) -> int:
    known = explained()
    tried = left = news = 0
    async with stored(url) as samples:
        trial = Trial(samples, prepare_all(samples, seeds))
        await trial.begin()
        for statement in statements:
            began = time.monotonic()
            for mutant in mutants(statement):
                if only and str(mutant) not in only:
                    continue
                tried += 1
                if await trial.catches(mutant):
                    continue
                left += 1
                is_news = str(mutant) not in known
                news += is_news
                print(f"{'NOT EXPLAINED  ' if is_news else ''}{mutant}", flush=True)
            print(f"# {statement}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    print(f"{tried} mutants, {left} not caught, of these {news} not explained")
    return 1 if news else 0


def main() -> int:
    """Run all of it on a database of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("statements", nargs="*", default=[*STATEMENTS])
    parser.add_argument("--histories", type=int, default=len(SEEDS), help="random histories beside the numbered ones")
    parser.add_argument("--of", type=Path, help="an earlier run's output: only the mutants that are lines of it")
    given = parser.parse_args()
    only = frozenset() if given.of is None else frozenset(given.of.read_text(encoding="utf-8").splitlines())
    with Database() as server:
        url = server.create_database("token_mutations")
        migrate(url)
        return asyncio.run(_run(url, given.statements, range(SEEDS.start, SEEDS.start + given.histories), only))


if __name__ == "__main__":
    sys.exit(main())
