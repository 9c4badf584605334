"""Two tenants ask each other's things over every edge: each loop fails at the first leak.

What the loops return shows that they were no empty shots: which routes were asked, and what was answered.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import httpx
import psycopg

from tests.fuzz.random_calls import RandomCalls
from tests.fuzz.random_requests import RandomRequests, Request, routes
from tests.fuzz.random_statements import random_statement
from tests.fuzz.tenant_isolation.isolated_tenants import (
    MISSING,
    IsolatedTenant,
    Names,
    fingerprint,
    number_of,
    tables_of,
)
from tests.support.registry_statements import statements

_FREEZE = {"reason": "to be found", "forSeconds": 600}

Pair = tuple[IsolatedTenant, IsolatedTenant]
#: Requests of one tenant before the other one's rows are looked at.
BLOCK = 500
#: Requests at most of routes that chance has missed.
_MORE = 10 * BLOCK
#: What each replica writes when it likes.
_WRITTEN_LATER = ("decision",)


class RestIsolation:
    """Requests by keys of either tenant."""

    def __init__(self, api: httpx.AsyncClient, document: Mapping[str, Any], pair: Pair, url: str) -> None:
        self._api = api
        self._document = document
        self._pair = pair
        self._url = url
        self.sent = 0
        #: Route -> status of each answer to a tenant's administrator that asked for its own.
        self.own: dict[str, Counter[int]] = defaultdict(Counter)

    async def run(self, random: Random, requests: int) -> None:
        """Send so many, or a few more; and some more of the routes that found nothing by chance."""
        number = 0
        while self.sent < requests or (self.missed() and self.sent < requests + _MORE):
            number += 1
            mine, theirs = self._pair if number % 2 else self._pair[::-1]
            await mine.refill()
            before, until = fingerprint(self._url, theirs.name), self.sent + BLOCK
            asking = RandomRequests(
                random, self._document, mine, theirs, self.missed() if self.sent >= requests else ()
            )
            while self.sent < until:
                await self._ask(asking, mine, theirs)
            assert fingerprint(self._url, theirs.name) == before

    def missed(self) -> dict[str, Counter[int]]:
        """Route -> what was answered, of routes that found nothing yet. What is the platform's is refused by the role."""
        asked = {route: self.own[route] for route, _ in routes(self._document)}
        return {
            route: codes
            for route, codes in asked.items()
            if set(+codes) != {403} and not any(code < 400 for code in +codes)
        }

    async def _ask(self, asking: RandomRequests, mine: IsolatedTenant, theirs: IsolatedTenant) -> None:
        request = asking.next()
        if request.of_a_tenant:
            foreign, of_foreign = await self._send(request, theirs.names, theirs)
            missing, of_missing = await self._send(request, MISSING, theirs)
            assert bytes_of(foreign) == bytes_of(missing), request
            assert of_foreign == of_missing, request
            assert foreign.status_code >= 400, f"{request}: {foreign.text}"
        if request.of_one_object:
            strays = [Names(mine.name, names.only, names.prefix) for names in (theirs.names, MISSING)]
            (stray, of_stray), (missing, of_missing) = [await self._send(request, one, theirs) for one in strays]
            assert stray.status_code == missing.status_code >= 400, f"{request}: {stray.text} {missing.text}"
            assert nameless(stray.text, theirs.names) == nameless(missing.text, MISSING), request
            assert of_stray == of_missing, request
        method, _, path = request.route.partition(" ")
        if request.able and method in {"GET", "DELETE"} and path.endswith("/freeze"):
            # There is one too seldom for chance to find each kind within the requests of a run.
            put = replace(request, route=f"PUT {path}", query={}, body=_FREEZE)
            await self._send(put, mine.names, theirs)
        own, _ = await self._send(request, mine.names, theirs)
        self.own[request.route][own.status_code] += request.able
        asking.learn(own)

    async def _send(self, request: Request, names: Names, theirs: IsolatedTenant) -> tuple[httpx.Response, list[str]]:
        with statements() as seen:
            answer = await request.send(self._api, names)
        self.sent += 1
        told = answer.text + str(answer.headers)
        assert not [mark for mark in theirs.marks if mark in told], f"{request}: {told}"
        assert answer.status_code != 500, f"{request}: {told}"
        # A key's last use is written at its first request of each minute.
        return answer, [statement for statement in seen if "SET last_used_at" not in statement]


def bytes_of(answer: httpx.Response) -> tuple[int, bytes, list[tuple[str, str]]]:
    """All that the caller can see."""
    return answer.status_code, answer.content, sorted(answer.headers.items())


def nameless(text: str, names: Names) -> str:
    """What is left of an answer when the names that the caller sent itself are taken away."""
    for name in (names.tenant, names.only, names.prefix):
        text = text.replace(name, "")
    return text


async def run_grpc_calls(
    random: Random, stubs: Mapping[str, Any], pair: Pair, url: str, calls: int
) -> tuple[Counter[str], dict[str, Counter[str]]]:
    """Calls of either tenant's KEDA, and of one that nobody is bound to.

    Args:
        random: chooses them.
        stubs: KEDA instance -> its connection; "stranger" is bound nowhere.
        pair: the tenants.
        url: the database.
        calls: how many are sent, or a few more.

    Returns:
        What was answered to the tenants' own questions: the codes, and per method.
    """
    sent, number, told, methods = 0, 0, Counter[str](), defaultdict[str, Counter[str]](Counter)
    while sent < calls:
        number += 1
        mine, theirs = pair if number % 2 else pair[::-1]
        before, until = fingerprint(url, theirs.name, but=_WRITTEN_LATER), min(sent + BLOCK, calls)
        asking = RandomCalls(random, mine, theirs)
        while sent < until:
            call = asking.next()
            stub = stubs[mine.instance]
            own = await call.send(stub, mine.names, 0.05)
            answers, sent = [own], sent + 1
            names_another = "tenant" in call.metadata or call.metadata.get("serviceType") == "{only}"
            for asker in (stubs["stranger"], stub) if names_another else (stubs["stranger"],):
                foreign, missing = [await call.send(asker, names) for names in (theirs.names, MISSING)]
                answers, sent = [*answers, foreign, missing], sent + 2
                assert foreign[0] == missing[0] != "OK", f"{call}: {foreign} {missing}"
                assert nameless(foreign[1], theirs.names) == nameless(missing[1], MISSING), call
            assert not [mark for mark in theirs.marks if mark in str(answers)], f"{call}: {answers}"
            told[own[0]] += 1
            told["lag"] += str(mine.lag) in own[1]
            methods[call.method][own[0]] += 1
        assert fingerprint(url, theirs.name, but=_WRITTEN_LATER) == before
    return told, methods


def run_statements(random: Random, pair: Pair, url: str, count: int) -> Counter[str]:
    """Statements in the API's role behind one tenant's wall; what became of them."""
    tables = tables_of(url)
    tables["tenant_lag_sample"] = tables["lag_sample"]
    ran = Counter[str]()
    with psycopg.connect(url) as connection:
        numbers = [number_of(connection, one.name) for one in pair]
        before = [fingerprint(url, one.name) for one in pair]
        for number in range(count):
            mine, theirs = numbers if number % 2 else numbers[::-1]
            ran[_run(connection, random_statement(random, tables, mine, theirs), mine)] += 1
    assert [fingerprint(url, one.name) for one in pair] == before
    return ran


def _run(connection: psycopg.Connection[Any], statement: Any, mine: int) -> str:
    with connection.transaction(force_rollback=True):
        connection.execute("set local role lagscale_api")
        connection.execute("select set_config('lagscale.tenant', %s, true)", (str(mine),))
        try:
            with connection.transaction():
                rows: Sequence[Any] = connection.execute(statement).fetchall()
        except psycopg.Error as refused:
            return type(refused).__name__
    assert {row[0] for row in rows} <= {mine}, statement.as_string(connection)
    return "rows" if rows else "none"
