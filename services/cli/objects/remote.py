"""Objects as the API has them: read, tried, written and deleted, several at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from lagscale.errors import LagscaleError, NotFound
from services.cli.client import ApiClient
from services.cli.concurrency import run_concurrently
from services.cli.objects.kinds import TENANT, ObjectKind, ObjectRef, build_ref, collection
from services.cli.objects.manifests import Manifest
from services.cli.objects.schemas import ApiSchemas
from services.cli.objects.writes import ObjectWrite, ObjectWriter, OnResult, WriteResultOrError

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
