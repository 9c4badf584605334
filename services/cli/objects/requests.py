"""Objects as the API has them: read, tried, written and deleted, several at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

from lagscale.errors import FieldError, InvalidInput, LagscaleError, NotAuthenticated, NotFound, StoreUnavailable
from services.cli.client import ApiClient
from services.cli.objects.kinds import MONITOR, TENANT, ObjectKind, ObjectRef, build_ref, collection
from services.cli.objects.manifests import Manifest
from services.cli.objects.schemas import ApiSchemas

#: Fewer monitors are written one by one.
_FEW = 20
#: One request is one transaction that locks the tenant: it must be far shorter than the store's patience.
_CHUNK = 250


@dataclass(frozen=True, slots=True)
class ObjectWrite:
    """An object to be written.

    Attributes:
        manifest: as it shall be.
        version: the version that the plan stands on; None without one, and for a new object.
        new: it was not there.
    """

    manifest: Manifest
    version: int | None = None
    new: bool = False


@dataclass(frozen=True, slots=True)
class ObjectWriteResult:
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
        return tuple(_format_warning(one) for one in self.answer.get("warnings") or ())


WriteResultOrError = ObjectWriteResult | LagscaleError
OnResult = Callable[[ObjectWrite, WriteResultOrError], None]


@dataclass(frozen=True, slots=True)
class ObjectWriter:
    """Writes objects."""

    client: ApiClient
    schemas: ApiSchemas

    def run(self, changes: Sequence[ObjectWrite], on_result: OnResult, *, dry_run: bool) -> list[WriteResultOrError]:
        """What became of each change, in their order, whatever becomes of the others.

        Args:
            changes: of objects that do not need each other.
            on_result: is called with each result as soon as it is known.
            dry_run: only ask what it would come to; of kinds that can be tried (`ApiSchemas.tries`).
        """
        chunks = list(self._split_chunks(changes))
        results: dict[int, WriteResultOrError] = {}

        def store_results(chunk: list[ObjectWrite], outcome: list[WriteResultOrError] | LagscaleError) -> None:
            outcomes = [outcome] * len(chunk) if isinstance(outcome, LagscaleError) else outcome
            for change, result in zip(chunk, outcomes, strict=True):
                results[id(change)] = result
                on_result(change, result)

        # Requests that lock the same tenant would only wait for each other.
        max_concurrent = 1 if any(len(chunk) > 1 for chunk in chunks) else MAX_CONCURRENT
        run_concurrently(lambda chunk: self._write_chunk(chunk, dry_run=dry_run), chunks, store_results, max_concurrent)
        return [results[id(change)] for change in changes]

    def _split_chunks(self, changes: Sequence[ObjectWrite]) -> Iterator[list[ObjectWrite]]:
        for (kind, _), group in groupby(changes, key=lambda one: one.manifest.ref[:2]):
            group_changes = list(group)
            most = min(_CHUNK, self.schemas.max_bulk_changes) if kind is MONITOR and len(group_changes) > _FEW else 1
            yield from (group_changes[begin : begin + most] for begin in range(0, len(group_changes), max(most, 1)))

    def _write_chunk(self, chunk: list[ObjectWrite], *, dry_run: bool) -> list[WriteResultOrError]:
        if len(chunk) == 1:
            return [self._write_one(chunk[0], dry_run=dry_run)]
        try:
            return list(self._write_bulk(chunk, dry_run=dry_run))
        except FATAL_ERRORS:
            raise
        except LagscaleError as wrong:
            # All or nothing was done, and it is nothing.
            return self._split_refused(chunk, wrong, dry_run=dry_run)

    def _split_refused(
        self, chunk: list[ObjectWrite], wrong: LagscaleError, *, dry_run: bool
    ) -> list[WriteResultOrError]:
        """What each of them comes to when one of them was refused."""
        faulty = _group_errors_by_item(wrong)
        results: dict[int, WriteResultOrError] = {
            index: InvalidInput(field_errors) for index, field_errors in faulty.items()
        }
        rest = [change for index, change in enumerate(chunk) if index not in faulty]
        others = iter(
            self._write_chunk(rest, dry_run=dry_run) if faulty and rest else self._write_each(rest, dry_run=dry_run)
        )
        return [results[index] if index in results else next(others) for index in range(len(chunk))]

    def _write_each(self, changes: Sequence[ObjectWrite], *, dry_run: bool) -> list[WriteResultOrError]:
        results: list[WriteResultOrError] = []
        for change in changes:
            try:
                # As the bulk request does: a look for each of many takes minutes where their cluster is away.
                results.append(self._write_one(change, dry_run=dry_run, preflight=False))
            except FATAL_ERRORS:
                raise
            except LagscaleError as wrong:
                results.append(wrong)
        return results

    def _write_one(self, change: ObjectWrite, *, dry_run: bool, preflight: bool = True) -> ObjectWriteResult:
        ref = change.manifest.ref
        path = ref.collection if ref.kind.method == "post" else ref.path
        query = self.schemas.query(ref.kind, dry_run=dry_run, preflight=preflight)
        version = None if dry_run else change.version
        answer, created = self.client.write(
            ref.kind.method.upper(), path + query, change.manifest.spec, version=version
        )
        # A binding that is there already is as it shall be: it has no version.
        same = not created and (change.version is None or answer.get("version") == change.version)
        return ObjectWriteResult(answer, created, same and not change.new)

    def _write_bulk(self, chunk: Sequence[ObjectWrite], *, dry_run: bool) -> Iterator[ObjectWriteResult]:
        ref = chunk[0].manifest.ref
        items = [
            {"put": {"name": one.manifest.ref.name, **one.manifest.spec}}
            | ({} if dry_run or (one.version is None and not one.new) else {"version": one.version or 0})
            for one in chunk
        ]
        path = f"{ref.collection}/bulk" + ("?dryRun=true" if dry_run else "")
        answer, _ = self.client.write("POST", path, {"items": items})
        for item in answer["items"]:
            differences = {name: (one["before"], one["after"]) for name, one in item["differences"].items()}
            outcome = item["outcome"]
            yield ObjectWriteResult(
                {"version": item["version"]}, outcome == "created", outcome == "unchanged", differences
            )


def _format_warning(given: Any) -> str:
    return ": ".join(str(one) for one in given.values() if one) if isinstance(given, Mapping) else str(given)


def _group_errors_by_item(wrong: LagscaleError) -> dict[int, list[FieldError]]:
    """Place of an item -> its faults, of an answer to a bulk request; empty if it does not tell them apart."""
    errors_by_index: dict[int, list[FieldError]] = {}
    for field_error in wrong.field_errors if isinstance(wrong, InvalidInput) else []:
        items, _, rest = field_error.field.partition(".")
        index, _, name = rest.partition(".")
        if items != "items" or not index.isdecimal():
            return {}
        errors_by_index.setdefault(int(index), []).append(FieldError(name.removeprefix("put."), field_error.text))
    return errors_by_index


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


ApiObject = dict[str, Any]

_PAGE = "500"
#: Up to so many objects are asked for one by one; more are found in the listing.
_FEW = 20


class ObjectClient:
    """The API as declared objects need it."""

    def __init__(self, client: ApiClient) -> None:
        """Ask the API what it takes.

        Raises:
            LagscaleError: it does not answer, or is no Lagscale of this version.
        """
        self._client = client
        self.schemas = ApiSchemas(client.get("/openapi.json"))
        self._writes = ObjectWriter(client, self.schemas)

    def one(self, ref: ObjectRef) -> ApiObject:
        """An object.

        Raises:
            NotFound: there is none for this key.
        """
        if ref.kind.method == "post":
            result = self.list_objects(ref.kind, ref.tenant).get(ref)
            if result is None:
                raise NotFound
            return result
        return self._client.get(ref.path)

    def list_objects(self, kind: ObjectKind, tenant: str = "") -> dict[ObjectRef, ApiObject]:
        """Every object of a kind in a tenant, page by page; all tenants that the key may see, for their kind.

        Raises:
            NotFound: there is no such tenant for this key.
        """
        result: dict[ObjectRef, ApiObject] = {}
        query = {"limit": _PAGE}
        while True:
            page = self._client.get(collection(kind, tenant), query)
            result |= {build_ref(kind, item, tenant): item for item in page["items"]}
            if page["next"] is None:
                return result
            query["cursor"] = page["next"]

    def get_many(self, refs: Collection[ObjectRef]) -> dict[ObjectRef, ApiObject]:
        """Those objects of one kind and tenant that are there; the tenant is."""
        if not refs:
            return {}
        first = next(iter(refs))
        if first.kind is not TENANT and (len(refs) > _FEW or first.kind.method == "post"):
            return {ref: item for ref, item in self.list_objects(first.kind, first.tenant).items() if ref in refs}
        ordered = sorted(refs, key=lambda ref: ref.sort_key)
        result: dict[ObjectRef, ApiObject] = {}
        for ref, answer in zip(ordered, run_concurrently(self._get_or_none, ordered, lambda *_: None), strict=True):
            if isinstance(answer, LagscaleError):
                raise answer
            if answer is not None:
                result[ref] = answer
        return result

    def dry_run_all(
        self, manifests: Sequence[Manifest], on_result: OnResult, version: Callable[[ObjectRef], int | None]
    ) -> list[WriteResultOrError]:
        """What writing each of them would come to; nothing is changed.

        Args:
            manifests: of kinds that the API can try (`ApiSchemas.tries`).
            on_result: is called with each result.
            version: the version that was read.
        """
        changes = [ObjectWrite(one, version(one.ref)) for one in manifests]
        return self._writes.run(changes, on_result, dry_run=True)

    def write_all(self, changes: Sequence[ObjectWrite], on_result: OnResult) -> list[WriteResultOrError]:
        """Write each of them, whatever becomes of the others; in the order of the changes."""
        return self._writes.run(changes, on_result, dry_run=False)

    def delete_all(
        self,
        refs: Sequence[tuple[ObjectRef, int | None]],
        on_result: Callable[[tuple[ObjectRef, int | None], LagscaleError | None], None],
    ) -> None:
        """Delete each of them if it still has the version that was seen, whatever becomes of the others."""
        run_concurrently(lambda one: self._client.delete(one[0].path, version=one[1]), refs, on_result)

    def _get_or_none(self, ref: ObjectRef) -> ApiObject | None:
        try:
            return self.one(ref)
        except NotFound:
            return None
