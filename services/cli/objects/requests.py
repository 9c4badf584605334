"""Requests for objects: read, dry run, write and delete, concurrently, and monitors of a tenant in bulk."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

from lagscale.errors import FieldError, InvalidInput, LagscaleError, NotAuthenticated, NotFound, StoreUnavailable
from services.cli.client import ApiClient
from services.cli.objects.kinds import MONITOR, TENANT, ObjectKind, ObjectRef, build_collection_path, build_ref
from services.cli.objects.manifests import Manifest
from services.cli.objects.schemas import ApiSchemas

#: Up to this number, monitors are written, and objects read, one by one.
_FEW = 20
_PAGE_SIZE = 500
#: One request is one transaction that locks the tenant: it must be far shorter than the store's timeouts.
_MAX_CHUNK = 250


@dataclass(frozen=True, slots=True)
class ObjectWrite:
    """An object to write.

    Attributes:
        manifest: desired state.
        version: the version that was read; None without one, and for a new object.
        new: the object did not exist.
    """

    manifest: Manifest
    version: int | None = None
    new: bool = False


@dataclass(frozen=True, slots=True)
class ObjectWriteResult:
    """Response of the API to a write or a dry run.

    Attributes:
        answer: the object; of a bulk request only its version.
        created: the object is new.
        same: nothing was changed.
        differences: field -> before and after, if the API returns them.
    """

    answer: Mapping[str, Any]
    created: bool
    same: bool
    differences: Mapping[str, tuple[Any, Any]] | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of the API."""
        return tuple(_format_warning(one) for one in self.answer.get("warnings") or ())


WriteResultOrError = ObjectWriteResult | LagscaleError
OnResult = Callable[[ObjectWrite, WriteResultOrError], None]


@dataclass(frozen=True, slots=True)
class ObjectWriter:
    """Writes objects, one by one or in bulk."""

    client: ApiClient
    schemas: ApiSchemas

    def run(self, changes: Sequence[ObjectWrite], on_result: OnResult, *, dry_run: bool) -> list[WriteResultOrError]:
        """The result of each change, in their order; a failed one does not stop the others.

        Args:
            changes: of objects that do not depend on each other.
            on_result: called with each result as soon as it is known.
            dry_run: change nothing; only for kinds that support it (`ApiSchemas.supports_dry_run`).
        """
        chunks = list(self._split_chunks(changes))
        results: dict[int, WriteResultOrError] = {}

        def store_results(chunk: list[ObjectWrite], outcome: list[WriteResultOrError] | LagscaleError) -> None:
            outcomes = [outcome] * len(chunk) if isinstance(outcome, LagscaleError) else outcome
            for change, result in zip(chunk, outcomes, strict=True):
                results[id(change)] = result
                on_result(change, result)

        # Bulk requests of one tenant would wait for each other's lock.
        max_concurrent = 1 if any(len(chunk) > 1 for chunk in chunks) else MAX_CONCURRENT
        run_concurrently(lambda chunk: self._write_chunk(chunk, dry_run=dry_run), chunks, store_results, max_concurrent)
        return [results[id(change)] for change in changes]

    def _split_chunks(self, changes: Sequence[ObjectWrite]) -> Iterator[list[ObjectWrite]]:
        for (kind, _), group in groupby(changes, key=lambda one: one.manifest.ref[:2]):
            group_changes = list(group)
            size = (
                min(_MAX_CHUNK, self.schemas.max_bulk_changes) if kind is MONITOR and len(group_changes) > _FEW else 1
            )
            yield from (group_changes[begin : begin + size] for begin in range(0, len(group_changes), max(size, 1)))

    def _write_chunk(self, chunk: list[ObjectWrite], *, dry_run: bool) -> list[WriteResultOrError]:
        if len(chunk) == 1:
            return [self._write_one(chunk[0], dry_run=dry_run)]
        try:
            return list(self._write_bulk(chunk, dry_run=dry_run))
        except FATAL_ERRORS:
            raise
        except LagscaleError as error:
            # A bulk request is all or nothing.
            return self._split_rejected(chunk, error, dry_run=dry_run)

    def _split_rejected(
        self, chunk: list[ObjectWrite], error: LagscaleError, *, dry_run: bool
    ) -> list[WriteResultOrError]:
        """The result of each change of a rejected bulk request."""
        errors_by_index = _group_errors_by_item(error)
        results: dict[int, WriteResultOrError] = {
            index: InvalidInput(field_errors) for index, field_errors in errors_by_index.items()
        }
        rest = [change for index, change in enumerate(chunk) if index not in errors_by_index]
        others = iter(
            self._write_chunk(rest, dry_run=dry_run)
            if errors_by_index and rest
            else self._write_each(rest, dry_run=dry_run)
        )
        return [results[index] if index in results else next(others) for index in range(len(chunk))]

    def _write_each(self, changes: Sequence[ObjectWrite], *, dry_run: bool) -> list[WriteResultOrError]:
        results: list[WriteResultOrError] = []
        for change in changes:
            try:
                # Like the bulk request: a preflight per object takes minutes if the cluster is unreachable.
                results.append(self._write_one(change, dry_run=dry_run, preflight=False))
            except FATAL_ERRORS:
                raise
            except LagscaleError as error:
                results.append(error)
        return results

    def _write_one(self, change: ObjectWrite, *, dry_run: bool, preflight: bool = True) -> ObjectWriteResult:
        ref = change.manifest.ref
        path = ref.collection if ref.kind.method == "post" else ref.path
        query = self.schemas.query(ref.kind, dry_run=dry_run, preflight=preflight)
        version = None if dry_run else change.version
        answer, created = self.client.write(
            ref.kind.method.upper(), path + query, change.manifest.spec, version=version
        )
        # An existing binding is always up to date: it has no version.
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


def _format_warning(warning: Any) -> str:
    return ": ".join(str(one) for one in warning.values() if one) if isinstance(warning, Mapping) else str(warning)


def _group_errors_by_item(error: LagscaleError) -> dict[int, list[FieldError]]:
    """Index of an item -> its errors, from the response to a bulk request; empty if they are not of single items."""
    errors_by_index: dict[int, list[FieldError]] = {}
    for field_error in error.field_errors if isinstance(error, InvalidInput) else []:
        items, _, rest = field_error.field.partition(".")
        index, _, name = rest.partition(".")
        if items != "items" or not index.isdecimal():
            return {}
        errors_by_index.setdefault(int(index), []).append(FieldError(name.removeprefix("put."), field_error.text))
    return errors_by_index


Item = TypeVar("Item")
Result = TypeVar("Result")

#: Concurrent requests: the API serves other callers too.
MAX_CONCURRENT = 4
#: After one of these every further request would fail too.
FATAL_ERRORS = (NotAuthenticated, StoreUnavailable)


class Skipped(LagscaleError):
    """The step was skipped because another one failed."""


def run_concurrently(
    call: Callable[[Item], Result],
    items: Sequence[Item],
    on_result: Callable[[Item, Result | LagscaleError], None],
    max_concurrent: int = MAX_CONCURRENT,
) -> list[Result | LagscaleError]:
    """Results and errors, in the order of the items. After a fatal error or an interrupt no further item is started.

    Args:
        call: sends the requests of one item.
        items: of the calls.
        on_result: called with each result as soon as it is known, from several threads.
        max_concurrent: number of threads.
    """
    fatal: list[LagscaleError] = []

    def attempt(item: Item) -> Result | LagscaleError:
        if fatal:
            return Skipped(f"skipped: {fatal[0].message}")
        try:
            return call(item)
        except LagscaleError as error:
            if isinstance(error, FATAL_ERRORS):
                fatal.append(error)
            return error

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
        # Wait for started requests, so that their results are printed.
        pool.shutdown(cancel_futures=True)


ApiObject = dict[str, Any]


class ObjectClient:
    """Objects of the API."""

    def __init__(self, client: ApiClient) -> None:
        """Read the schemas of the API.

        Raises:
            LagscaleError: the API is not reachable, or of another version.
        """
        self._client = client
        self.schemas = ApiSchemas(client.get("/openapi.json"))
        self._writer = ObjectWriter(client, self.schemas)

    def get_one(self, ref: ObjectRef) -> ApiObject:
        """An object.

        Raises:
            NotFound: there is none that this key can see.
        """
        if ref.kind.method == "post":
            result = self.list_objects(ref.kind, ref.tenant).get(ref)
            if result is None:
                raise NotFound
            return result
        return self._client.get(ref.path)

    def list_objects(self, kind: ObjectKind, tenant: str = "") -> dict[ObjectRef, ApiObject]:
        """All objects of a kind in a tenant; for the kind of tenants, all that the key can see.

        Raises:
            NotFound: there is no such tenant that this key can see.
        """
        items = self._client.list_items(build_collection_path(kind, tenant), page_size=_PAGE_SIZE)
        return {build_ref(kind, item, tenant): item for item in items}

    def get_many(self, refs: Collection[ObjectRef]) -> dict[ObjectRef, ApiObject]:
        """The existing ones of these objects of one kind and tenant; the tenant exists."""
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
        """The result of writing each of them, without changing anything.

        Args:
            manifests: of kinds that support it (`ApiSchemas.supports_dry_run`).
            on_result: called with each result.
            version: the version that was read.
        """
        changes = [ObjectWrite(one, version(one.ref)) for one in manifests]
        return self._writer.run(changes, on_result, dry_run=True)

    def write_all(self, changes: Sequence[ObjectWrite], on_result: OnResult) -> list[WriteResultOrError]:
        """Write each of them; a failed one does not stop the others. Results are in the order of the changes."""
        return self._writer.run(changes, on_result, dry_run=False)

    def delete_all(
        self,
        refs: Sequence[tuple[ObjectRef, int | None]],
        on_result: Callable[[tuple[ObjectRef, int | None], LagscaleError | None], None],
    ) -> None:
        """Delete each of them if it still has the version that was read; a failed one does not stop the others."""
        run_concurrently(lambda one: self._client.delete(one[0].path, version=one[1]), refs, on_result)

    def _get_or_none(self, ref: ObjectRef) -> ApiObject | None:
        try:
            return self.get_one(ref)
        except NotFound:
            return None
