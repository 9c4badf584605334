"""Two tenants with equally named everything, over REST, gRPC and SQL: nothing of one ever reaches the other."""

from __future__ import annotations

import os
import random as seeded
from random import Random
from typing import Any

import httpx
import pytest

from tests.fuzz.random_calls import METHODS
from tests.fuzz.random_requests import routes
from tests.fuzz.walls import OverRest, Pair, over_grpc, over_sql

#: In CI; `make fuzz` asks for 100,000.
REQUESTS = int(os.environ.get("LAGSCALE_FUZZ_EXAMPLES", "20000"))
pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(300 + REQUESTS // 20)]


async def test_no_request_shows_or_changes_another_tenants_rows(
    api: httpx.AsyncClient, pair: Pair, shared_url: str
) -> None:
    document = (await api.get("/openapi.json")).json()
    asked = OverRest(api, document, pair, shared_url)
    await asked.run(Random(seeded.getrandbits(32)), REQUESTS * 40 // 100)
    assert set(asked.own) == {route for route, _ in routes(document)}, "a route was never asked"
    # What is the platform's is refused by the role. Everything else must have been found.
    reached = {route: {code for code, times in codes.items() if times} for route, codes in asked.own.items()}
    unreached = {route: codes for route, codes in reached.items() if codes != {403} and min(codes, default=999) >= 400}
    assert unreached == {}, "no request of this route found what it asked for"


async def test_no_call_of_keda_tells_another_tenants_lag(pair: Pair, stubs: dict[str, Any], shared_url: str) -> None:
    told, methods = await over_grpc(Random(seeded.getrandbits(32)), stubs, pair, shared_url, REQUESTS * 40 // 100)
    assert set(methods) == set(METHODS), "a method was never asked"
    assert min(codes["OK"] for codes in methods.values()) > 0, methods
    assert min(told["OK"], told["NOT_FOUND"], told["INVALID_ARGUMENT"], told["lag"]) > 10, told


async def test_no_statement_of_the_api_reaches_over_the_wall(pair: Pair, shared_url: str) -> None:
    ran = over_sql(Random(seeded.getrandbits(32)), pair, shared_url, REQUESTS * 20 // 100)
    assert ran["rows"] > REQUESTS // 100, ran
    assert ran["InsufficientPrivilege"] > 20, ran
