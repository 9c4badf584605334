"""Objects as the API has them: read, tried, written and deleted, several at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from lagscale.errors import LagscaleError, NotFound
from services.cli.client import Client
from services.cli.concurrency import several
from services.cli.objects.kinds import TENANT, Kind, Ref, collection, ref_of
from services.cli.objects.manifests import Manifest
from services.cli.objects.schemas import Schemas
from services.cli.objects.writes import Change, Result, Told, Writes

Answer = dict[str, Any]

_PAGE = "500"
#: Up to so many objects are asked for one by one; more are found in the listing.
_FEW = 20


class Remote:
    """The API as declared objects need it."""

    def __init__(self, client: Client) -> None:
        """Ask the API what it takes.

        Raises:
            LagscaleError: it does not answer, or is no Lagscale of this version.
        """
        self._client = client
        self.schemas = Schemas(client.get("/openapi.json"))
        self._writes = Writes(client, self.schemas)

    def one(self, ref: Ref) -> Answer:
        """An object.

        Raises:
            NotFound: there is none for this key.
        """
        if ref.kind.method == "post":
            found = self.listed(ref.kind, ref.tenant).get(ref)
            if found is None:
                raise NotFound
            return found
        return self._client.get(ref.path)

    def listed(self, kind: Kind, tenant: str = "") -> dict[Ref, Answer]:
        """Every object of a kind in a tenant, page by page; all tenants that the key may see, for their kind.

        Raises:
            NotFound: there is no such tenant for this key.
        """
        found: dict[Ref, Answer] = {}
        query = {"limit": _PAGE}
        while True:
            page = self._client.get(collection(kind, tenant), query)
            found |= {ref_of(kind, item, tenant): item for item in page["items"]}
            if page["next"] is None:
                return found
            query["cursor"] = page["next"]

    def those(self, refs: Collection[Ref]) -> dict[Ref, Answer]:
        """Those objects of one kind and tenant that are there; the tenant is."""
        if not refs:
            return {}
        first = next(iter(refs))
        if first.kind is not TENANT and (len(refs) > _FEW or first.kind.method == "post"):
            return {ref: item for ref, item in self.listed(first.kind, first.tenant).items() if ref in refs}
        ordered = sorted(refs, key=lambda ref: ref.rank)
        found: dict[Ref, Answer] = {}
        for ref, answer in zip(ordered, several(self._or_none, ordered, lambda *_: None), strict=True):
            if isinstance(answer, LagscaleError):
                raise answer
            if answer is not None:
                found[ref] = answer
        return found

    def tried(self, manifests: Sequence[Manifest], told: Told, seen: Callable[[Ref], int | None]) -> list[Result]:
        """What writing each of them would come to; nothing is changed.

        Args:
            manifests: of kinds that the API can try (`Schemas.tries`).
            told: is called with each result.
            seen: the version that was read.
        """
        changes = [Change(one, seen(one.ref)) for one in manifests]
        return self._writes.run(changes, told, dry=True)

    def written(self, changes: Sequence[Change], told: Told) -> list[Result]:
        """Write each of them, whatever becomes of the others; in the order of the changes."""
        return self._writes.run(changes, told, dry=False)

    def deleted(
        self,
        refs: Sequence[tuple[Ref, int | None]],
        told: Callable[[tuple[Ref, int | None], LagscaleError | None], None],
    ) -> None:
        """Delete each of them if it still has the version that was seen, whatever becomes of the others."""
        several(lambda one: self._client.delete(one[0].path, seen=one[1]), refs, told)

    def _or_none(self, ref: Ref) -> Answer | None:
        try:
            return self.one(ref)
        except NotFound:
            return None
