"""Objects as the API has them: read, tried, written and deleted, several at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from lagscale.errors import LagscaleError, NotAuthenticated, NotFound, StoreUnavailable
from services.cli.client import Client
from services.cli.kinds import TENANT, Kind, Ref, collection, ref_of
from services.cli.manifests import Manifest
from services.cli.schemas import Schemas

Answer = dict[str, Any]
Item = TypeVar("Item")
#: Called with each item and what became of it, as soon as that is known; from several threads.
Told = Callable[[Item, Any], None]

_PAGE = "500"
#: Up to so many objects are asked for one by one; more are found in the listing.
_FEW = 20
#: Requests at once: the API serves one caller beside others.
_AT_ONCE = 4
#: After one of these the next request would meet the same.
_HOPELESS = (NotAuthenticated, StoreUnavailable)


class NotTried(LagscaleError):
    """It was not tried: something that it needs went wrong before."""


@dataclass(frozen=True, slots=True)
class Written:
    """What the API answered to a change, or would answer: the object, and whether it is a new one."""

    answer: Answer
    created: bool


@dataclass(frozen=True, slots=True)
class Change:
    """An object to be written.

    Attributes:
        manifest: as it shall be.
        seen: the version that the plan stands on; None without one, and for a new object.
    """

    manifest: Manifest
    seen: int | None


class Remote:
    """The API as declared objects need it."""

    def __init__(self, client: Client) -> None:
        """Ask the API what it takes.

        Raises:
            LagscaleError: it does not answer, or is no Lagscale of this version.
        """
        self._client = client
        self.schemas = Schemas(client.get("/openapi.json"))

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
        for ref, answer in zip(ordered, self._each(self._or_none, ordered, lambda *_: None), strict=True):
            if isinstance(answer, LagscaleError):
                raise answer
            if answer is not None:
                found[ref] = answer
        return found

    def tried(self, manifests: Sequence[Manifest], told: Told[Manifest]) -> list[Written | LagscaleError]:
        """What writing each of them would come to; nothing is changed. Only where the API can tell (`Schemas.tries`)."""
        return self._each(lambda one: self._write(one, None, "?dryRun=true"), manifests, told)

    def written(self, changes: Sequence[Change], told: Told[Change]) -> list[Written | LagscaleError]:
        """Write each of them, whatever comes of the others; in the order of the changes."""
        return self._each(lambda one: self._write(one.manifest, one.seen, ""), changes, told)

    def deleted(
        self, refs: Sequence[tuple[Ref, int | None]], told: Told[tuple[Ref, int | None]]
    ) -> list[LagscaleError | None]:
        """Delete each of them if it still has the version that was seen, whatever comes of the others."""
        return self._each(lambda one: self._client.delete(one[0].path, seen=one[1]), refs, told)

    def _write(self, manifest: Manifest, seen: int | None, query: str) -> Written:
        ref = manifest.ref
        path = ref.collection if ref.kind.method == "post" else ref.path
        answer, created = self._client.write(ref.kind.method.upper(), path + query, manifest.spec, seen=seen)
        return Written(answer, created)

    def _or_none(self, ref: Ref) -> Answer | None:
        try:
            return self.one(ref)
        except NotFound:
            return None

    def _each(self, work: Callable[[Item], Any], items: Iterable[Item], told: Told[Item]) -> list[Any]:
        """Results and errors, in order. What cannot succeed any more is not begun."""
        hopeless: list[LagscaleError] = []

        def attempt(item: Item) -> Any:
            if hopeless:
                return NotTried(f"was not tried any more: {hopeless[0].message}")
            try:
                return work(item)
            except LagscaleError as wrong:
                if isinstance(wrong, _HOPELESS):
                    hopeless.append(wrong)
                return wrong

        def run(item: Item) -> Any:
            result = attempt(item)
            told(item, result)
            return result

        pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="request")
        try:
            return list(pool.map(run, items))
        except KeyboardInterrupt:
            hopeless.append(LagscaleError("interrupted"))
            raise
        finally:
            # What has begun is waited for, so that its outcome is told.
            pool.shutdown(cancel_futures=True)
