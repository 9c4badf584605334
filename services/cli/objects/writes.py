"""Objects are written, or only tried: one by one, and many monitors of a tenant in one request where the API can."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from lagscale.errors import Fault, InvalidInput, LagscaleError
from services.cli.client import Client
from services.cli.concurrency import AT_ONCE, HOPELESS, several
from services.cli.objects.kinds import MONITOR
from services.cli.objects.manifests import Manifest
from services.cli.objects.schemas import Schemas

#: Fewer monitors are written one by one.
_FEW = 20
#: One request is one transaction that locks the tenant: it must be far shorter than the store's patience.
_CHUNK = 250


@dataclass(frozen=True, slots=True)
class Change:
    """An object to be written.

    Attributes:
        manifest: as it shall be.
        seen: the version that the plan stands on; None without one, and for a new object.
        new: it was not there.
    """

    manifest: Manifest
    seen: int | None = None
    new: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """What the API answered to a change, or would answer.

    Attributes:
        answer: the object; of a bulk request its version alone.
        created, same: it is a new one; nothing was changed.
        differences: field -> before and after, where the API tells them.
    """

    answer: Mapping[str, Any]
    created: bool
    same: bool
    differences: Mapping[str, tuple[Any, Any]] | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the API warns of."""
        return tuple(_warning(one) for one in self.answer.get("warnings") or ())


Result = Written | LagscaleError
Told = Callable[[Change, Result], None]


@dataclass(frozen=True, slots=True)
class Writes:
    """Writes objects."""

    client: Client
    schemas: Schemas

    def run(self, changes: Sequence[Change], told: Told, *, dry: bool) -> list[Result]:
        """What became of each change, in their order, whatever becomes of the others.

        Args:
            changes: of objects that do not need each other.
            told: is called with each result as soon as it is known.
            dry: only ask what it would come to; of kinds that can be tried (`Schemas.tries`).
        """
        chunks = list(self._chunks(changes))
        results: dict[int, Result] = {}

        def keep(chunk: list[Change], found: list[Result] | LagscaleError) -> None:
            each = [found] * len(chunk) if isinstance(found, LagscaleError) else found
            for change, result in zip(chunk, each, strict=True):
                results[id(change)] = result
                told(change, result)

        # Requests that lock the same tenant would only wait for each other.
        at_once = 1 if any(len(chunk) > 1 for chunk in chunks) else AT_ONCE
        several(lambda chunk: self._chunk(chunk, dry=dry), chunks, keep, at_once)
        return [results[id(change)] for change in changes]

    def _chunks(self, changes: Sequence[Change]) -> Iterator[list[Change]]:
        for (kind, _), group in groupby(changes, key=lambda one: one.manifest.ref[:2]):
            found = list(group)
            most = min(_CHUNK, self.schemas.most_changes) if kind is MONITOR and len(found) > _FEW else 1
            yield from (found[begin : begin + most] for begin in range(0, len(found), max(most, 1)))

    def _chunk(self, chunk: list[Change], *, dry: bool) -> list[Result]:
        if len(chunk) == 1:
            return [self._single(chunk[0], dry=dry)]
        try:
            return list(self._bulk(chunk, dry=dry))
        except HOPELESS:
            raise
        except LagscaleError as wrong:
            # All or nothing was done, and it is nothing.
            return self._apart(chunk, wrong, dry=dry)

    def _apart(self, chunk: list[Change], wrong: LagscaleError, *, dry: bool) -> list[Result]:
        """What each of them comes to when one of them was refused."""
        faulty = _faulty(wrong)
        results: dict[int, Result] = {place: InvalidInput(faults) for place, faults in faulty.items()}
        rest = [change for place, change in enumerate(chunk) if place not in faulty]
        others = iter(self._chunk(rest, dry=dry) if faulty and rest else self._one_by_one(rest, dry=dry))
        return [results[place] if place in results else next(others) for place in range(len(chunk))]

    def _one_by_one(self, changes: Sequence[Change], *, dry: bool) -> list[Result]:
        results: list[Result] = []
        for change in changes:
            try:
                # As the bulk request does: a look for each of many takes minutes where their cluster is away.
                results.append(self._single(change, dry=dry, looks=False))
            except HOPELESS:
                raise
            except LagscaleError as wrong:
                results.append(wrong)
        return results

    def _single(self, change: Change, *, dry: bool, looks: bool = True) -> Written:
        ref = change.manifest.ref
        path = ref.collection if ref.kind.method == "post" else ref.path
        query = self.schemas.query(ref.kind, dry=dry, looks=looks)
        seen = None if dry else change.seen
        answer, created = self.client.write(ref.kind.method.upper(), path + query, change.manifest.spec, seen=seen)
        # A binding that is there already is as it shall be: it has no version.
        same = not created and (change.seen is None or answer.get("version") == change.seen)
        return Written(answer, created, same and not change.new)

    def _bulk(self, chunk: Sequence[Change], *, dry: bool) -> Iterator[Written]:
        ref = chunk[0].manifest.ref
        items = [
            {"put": {"name": one.manifest.ref.name, **one.manifest.spec}}
            | ({} if dry or (one.seen is None and not one.new) else {"version": one.seen or 0})
            for one in chunk
        ]
        path = f"{ref.collection}/bulk" + ("?dryRun=true" if dry else "")
        answer, _ = self.client.write("POST", path, {"items": items})
        for item in answer["items"]:
            differences = {name: (one["before"], one["after"]) for name, one in item["differences"].items()}
            outcome = item["outcome"]
            yield Written({"version": item["version"]}, outcome == "created", outcome == "unchanged", differences)


def _warning(given: Any) -> str:
    return ": ".join(str(one) for one in given.values() if one) if isinstance(given, Mapping) else str(given)


def _faulty(wrong: LagscaleError) -> dict[int, list[Fault]]:
    """Place of an item -> its faults, of an answer to a bulk request; empty if it does not tell them apart."""
    found: dict[int, list[Fault]] = {}
    for fault in wrong.faults if isinstance(wrong, InvalidInput) else []:
        items, _, rest = fault.field.partition(".")
        place, _, name = rest.partition(".")
        if items != "items" or not place.isdecimal():
            return {}
        found.setdefault(int(place), []).append(Fault(name.removeprefix("put."), fault.text))
    return found
