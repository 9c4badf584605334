"""Two tenants with equally named everything, over REST, gRPC and SQL: nothing of one ever reaches the other."""

from __future__ import annotations

import os
import random as seeded
from random import Random
from typing import Any

import httpx
import pytest

from tests.fuzz.driver_log import record_statements
from tests.fuzz.random_calls import METHODS, Call, RandomCalls
from tests.fuzz.tenant_isolation.isolated_tenants import MISSING
from tests.fuzz.tenant_isolation.isolation_loops import Pair, RestIsolation, run_grpc_calls, run_statements

#: In CI; `make fuzz` asks for 100,000.
REQUESTS = max(20_000, int(os.environ.get("LAGSCALE_FUZZ_EXAMPLES", "0")))
#: What a replica asks the store beside its calls.
BESIDE_CALLS = {"registry_version", "append_decisions", "mark_asked"}
pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(300 + REQUESTS // 20)]


async def test_no_request_shows_or_changes_another_tenants_rows(
    api: httpx.AsyncClient, pair: Pair, shared_url: str
) -> None:
    document = (await api.get("/openapi.json")).json()
    walls = RestIsolation(api, document, pair, shared_url)
    await walls.run(Random(seeded.getrandbits(32)), REQUESTS * 40 // 100)
    assert walls.missed() == {}, "no request of this route found what it asked for"


async def test_no_call_of_keda_tells_another_tenants_lag(pair: Pair, stubs: dict[str, Any], shared_url: str) -> None:
    told, methods = await run_grpc_calls(Random(seeded.getrandbits(32)), stubs, pair, shared_url, REQUESTS * 40 // 100)
    assert set(methods) == set(METHODS), "a method was never asked"
    assert min(codes["OK"] for codes in methods.values()) > 0, methods
    assert min(told["OK"], told["NOT_FOUND"], told["INVALID_ARGUMENT"], told["lag"]) > 10, told


async def test_what_is_not_the_callers_is_refused_without_a_question_to_the_store(
    pair: Pair, stubs: dict[str, Any]
) -> None:
    mine, theirs = pair
    asking = RandomCalls(Random(seeded.getrandbits(32)), mine, theirs)
    with record_statements() as of_own:
        own = Call("GetMetrics", "prod", {"serviceType": "orders"}, "orders")
        assert (await own.send(stubs[mine.instance], mine.names))[0] == "OK"
    assert "judge_fast" in of_own or "judge_full" in of_own, of_own
    for names in (theirs.names, MISSING):
        with record_statements() as seen:
            for _ in range(300):
                call = asking.next()
                call.metadata["tenant"] = "{tenant}"
                assert (await call.send(stubs[mine.instance], names))[0] != "OK"
        assert [statement for statement in seen if statement not in BESIDE_CALLS] == [], names


async def test_no_statement_of_the_api_reaches_over_the_wall(pair: Pair, shared_url: str) -> None:
    ran = run_statements(Random(seeded.getrandbits(32)), pair, shared_url, REQUESTS * 20 // 100)
    assert ran["rows"] > REQUESTS // 100, ran
    assert ran["InsufficientPrivilege"] > 20, ran
