"""Requests for objects: read, dry run, write and delete, concurrently, and monitors of a tenant in bulk."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Any, TypeVar

from lagscale.errors import FieldError, InvalidInput, LagscaleError, NotAuthenticated, NotFound, StoreUnavailable
from services.cli.client import WRITE_TIMEOUT_SECONDS, ApiClient
from services.cli.objects.kinds import MONITOR, TENANT, ObjectKind, ObjectRef, build_collection_path, build_ref
from services.cli.objects.manifests import Manifest
from services.cli.objects.schemas import ApiSchemas, Spec

#: Up to this number, monitors are written, and objects read, one by one.
_FEW = 20
_PAGE_SIZE = 500
#: One request is one transaction that locks the tenant: it must be far shorter than the store's timeouts.
_MAX_CHUNK = 250
#: Concurrent requests: the API serves other callers too.
_MAX_CONCURRENT = 4
#: After one of these every further request would fail too.
_FATAL_ERRORS = (NotAuthenticated, StoreUnavailable)

ApiObject = dict[str, Any]
Item = TypeVar("Item")
Result = TypeVar("Result")


class Skipped(LagscaleError):
    """The step was skipped because another one failed."""


class PlanAction(StrEnum):
    """Action of a step."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    SAME = "same"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field that differs; None if it is not set."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One object to write or to delete; as a result, with the action that was taken.

    Attributes:
        manifest: desired state; None for an object to delete.
        version: the version that was read; None without one, and for a new object.
        differences: by field.
        error: why the API would reject the step now, or why it failed.
        warnings: problems that do not prevent the step.
    """

    action: PlanAction
    ref: ObjectRef
    manifest: Manifest | None = None
    version: int | None = None
    differences: tuple[FieldChange, ...] = ()
    error: LagscaleError | None = None
    warnings: tuple[str, ...] = ()

    @property
    def spec(self) -> Spec:
        """The desired spec."""
        return {} if self.manifest is None else self.manifest.spec


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


def run_concurrently(
    call: Callable[[Item], Result],
    items: Sequence[Item],
    on_result: Callable[[Item, Result | LagscaleError], None],
    max_concurrent: int = _MAX_CONCURRENT,
) -> list[Result | LagscaleError]:
    """Results and errors, in the order of the items. After a fatal error or an interrupt no further item is started.

    `on_result` is called with each result as soon as it is known, from several threads.
    """
    fatal: list[LagscaleError] = []

    def attempt(item: Item) -> Result | LagscaleError:
        if fatal:
            return Skipped(f"skipped: {fatal[0].message}")
        try:
            return call(item)
        except LagscaleError as error:
            if isinstance(error, _FATAL_ERRORS):
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


class ObjectClient:
    """Objects of the API."""

    def __init__(self, client: ApiClient) -> None:
        """Read the schemas of the API.

        Raises:
            LagscaleError: the API is not reachable, or of another version.
        """
        self._client = client
        self.schemas = ApiSchemas(client.get("/openapi.json"))

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
        for ref, answer in zip(ordered, run_concurrently(self.get_one, ordered, lambda *_: None), strict=True):
            if isinstance(answer, LagscaleError) and not isinstance(answer, NotFound):
                raise answer
            if not isinstance(answer, LagscaleError):
                result[ref] = answer
        return result

    def write_all(
        self,
        steps: Sequence[PlanStep],
        on_result: Callable[[PlanStep, WriteResultOrError], None],
        *,
        dry_run: bool = False,
    ) -> list[WriteResultOrError]:
        """The result of each write, in the order of the steps; a failed one does not stop the others.

        The writes do not depend on each other. `on_result` is called with each result as soon as it is known. A dry run
        changes nothing; only for kinds that support it (`ApiSchemas.supports_dry_run`).
        """
        chunks = list(self._split_chunks(steps))
        results: dict[ObjectRef, WriteResultOrError] = {}

        def store_results(chunk: list[PlanStep], outcome: list[WriteResultOrError] | LagscaleError) -> None:
            outcomes = [outcome] * len(chunk) if isinstance(outcome, LagscaleError) else outcome
            for step, result in zip(chunk, outcomes, strict=True):
                results[step.ref] = result
                on_result(step, result)

        # Bulk requests of one tenant would wait for each other's lock.
        max_concurrent = 1 if any(len(chunk) > 1 for chunk in chunks) else _MAX_CONCURRENT
        run_concurrently(lambda chunk: self._write_chunk(chunk, dry_run=dry_run), chunks, store_results, max_concurrent)
        return [results[step.ref] for step in steps]

    def delete_all(
        self, steps: Sequence[PlanStep], on_result: Callable[[PlanStep, object | LagscaleError], None]
    ) -> None:
        """Delete each object if it still has the version that was read; a failed one does not stop the others."""
        run_concurrently(
            lambda step: self._client.send("DELETE", step.ref.path, version=step.version), steps, on_result
        )

    def _split_chunks(self, steps: Sequence[PlanStep]) -> Iterator[list[PlanStep]]:
        for (kind, _), group in groupby(steps, key=lambda step: step.ref[:2]):
            of_tenant = list(group)
            bulk = kind is MONITOR and len(of_tenant) > _FEW
            size = max(1, min(_MAX_CHUNK, self.schemas.max_bulk_changes)) if bulk else 1
            yield from (of_tenant[begin : begin + size] for begin in range(0, len(of_tenant), size))

    def _write_chunk(self, chunk: list[PlanStep], *, dry_run: bool) -> list[WriteResultOrError]:
        if len(chunk) == 1:
            return [self._write_one(chunk[0], dry_run=dry_run)]
        try:
            return list(self._write_bulk(chunk, dry_run=dry_run))
        except _FATAL_ERRORS:
            raise
        except LagscaleError as error:
            # A bulk request is all or nothing.
            return self._split_rejected(chunk, error, dry_run=dry_run)

    def _split_rejected(
        self, chunk: list[PlanStep], error: LagscaleError, *, dry_run: bool
    ) -> list[WriteResultOrError]:
        """The result of each step of a rejected bulk request."""
        errors_by_index = _group_errors_by_item(error)
        rest = [step for index, step in enumerate(chunk) if index not in errors_by_index]
        write = self._write_chunk if errors_by_index and rest else self._write_each
        others = iter(write(rest, dry_run=dry_run))
        return [
            InvalidInput(errors_by_index[index]) if index in errors_by_index else next(others)
            for index in range(len(chunk))
        ]

    def _write_each(self, steps: Sequence[PlanStep], *, dry_run: bool) -> list[WriteResultOrError]:
        results: list[WriteResultOrError] = []
        for step in steps:
            try:
                # Like the bulk request: a preflight per object takes minutes if the cluster is unreachable.
                results.append(self._write_one(step, dry_run=dry_run, preflight=False))
            except _FATAL_ERRORS:
                raise
            except LagscaleError as error:
                results.append(error)
        return results

    def _write_one(self, step: PlanStep, *, dry_run: bool, preflight: bool = True) -> ObjectWriteResult:
        ref = step.ref
        path = ref.collection if ref.kind.method == "post" else ref.path
        query = self.schemas.query(ref.kind, dry_run=dry_run, preflight=preflight)
        version = None if dry_run else step.version
        answer, created = self._client.send(
            ref.kind.method.upper(), path + query, step.spec, version=version, timeout=WRITE_TIMEOUT_SECONDS
        )
        # An existing binding is always up to date: it has no version.
        same = not created and (step.version is None or answer.get("version") == step.version)
        return ObjectWriteResult(answer, created, same and step.action is not PlanAction.CREATE)

    def _write_bulk(self, chunk: Sequence[PlanStep], *, dry_run: bool) -> Iterator[ObjectWriteResult]:
        items: list[dict[str, Any]] = []
        for step in chunk:
            items.append({"put": {"name": step.ref.name, **step.spec}})
            if not dry_run and (step.version is not None or step.action is PlanAction.CREATE):
                items[-1]["version"] = step.version or 0
        path = f"{chunk[0].ref.collection}/bulk" + ("?dryRun=true" if dry_run else "")
        answer, _ = self._client.send("POST", path, {"items": items}, timeout=WRITE_TIMEOUT_SECONDS)
        for item in answer["items"]:
            differences = {name: (one["before"], one["after"]) for name, one in item["differences"].items()}
            created, same = item["outcome"] == "created", item["outcome"] == "unchanged"
            yield ObjectWriteResult({"version": item["version"]}, created, same, differences)


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
