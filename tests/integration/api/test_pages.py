"""Pages hold while objects come and go in between: what is there the whole time is seen once, and nothing twice."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.integration.api.conftest import Shop
from tests.integration.api.listings import Listing, listings
from tests.support.api_document import api_document

pytestmark = pytest.mark.integration

#: Byte order and a language's differ in these.
NAMES = ("a", "a-1", "a1", "ab", "b", "b-a", "ba", "m", "m-0", "z")
LATER = ("0", "a-0", "aa", "b0", "l", "m1", "y-9", "zz")


def paged() -> set[str]:
    """Paths of the document that are read page by page."""
    return {
        path
        for path, operations in api_document()["paths"].items()
        if {"limit", "cursor"} <= {given["name"] for given in operations.get("get", {}).get("parameters", ())}
    }


def test_every_list_is_walked_here() -> None:
    assert {one.path for one in listings("").values()} == paged()


async def page(shop: Shop, listing: Listing, cursor: str | None) -> tuple[list[str], str | None]:
    path = listing.path.replace("{tenant}", shop.name).replace("{monitor}", "orders")
    query: dict[str, Any] = {name: text.replace("{tenant}", shop.name) for name, text in (listing.query or {}).items()}
    query |= {"limit": 2} | ({} if cursor is None else {"cursor": cursor})
    answer = await shop.api.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return [listing.of(item) for item in answer.json()["items"]], answer.json()["next"]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", listings(""))
async def test_what_is_there_the_whole_time_is_seen_once(shop: Shop, shared_url: str, name: str, seed: int) -> None:
    chance, listing = Random(f"{name} {seed}"), listings(shared_url)[name]
    if listing.begin is not None:
        await listing.begin(shop)
    lived = {await listing.make(shop, one) for one in chance.sample(NAMES, len(NAMES))}
    coming = chance.sample(LATER, len(LATER))
    seen: Counter[str] = Counter()
    cursor, pages = None, 0
    while cursor is not None or pages == 0:
        items, cursor = await page(shop, listing, cursor)
        seen.update(items)
        pages += 1
        if coming:
            # One that comes somewhere, and one that goes somewhere: before the cursor or after it.
            await listing.make(shop, coming.pop())
            if listing.remove is not None and len(lived) > 3:
                going = chance.choice(sorted(lived))
                lived.discard(going)
                await listing.remove(shop, going)
        assert pages < 1000
    assert pages >= 3
    assert {one: seen[one] for one in sorted(lived)} == dict.fromkeys(sorted(lived), 1)
    assert [one for one, times in seen.items() if times > 1] == []
