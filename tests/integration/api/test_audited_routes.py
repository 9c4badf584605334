"""Every route that changes something writes down what it did, in the same transaction, and nothing secret."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psycopg
import pytest

from devstack.database import Database
from lagscale.store.registry.tables import metadata
from tests.conftest import migrate
from tests.integration.api.conftest import fresh
from tests.integration.api.writing_routes import CANARY, WRITINGS, Writing
from tests.support.api_server import ADMIN, PEER, bearer, serving

pytestmark = pytest.mark.integration

WRITING_METHODS = {"POST", "PUT", "PATCH", "DELETE"}
#: They ask by POST and change nothing.
READING = frozenset(
    {"POST /v1/tenants/{tenant}/clusters/{cluster}/preflight", "POST /v1/tenants/{tenant}/monitors/validate"}
)
REFUSE = """
create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no audit today' using errcode = 'cannot_connect_now'; end $$;
create trigger refuse before insert on audit_event for each row execute function refuse();
"""


@pytest.fixture
def own_url(database: Database) -> Iterator[str]:
    """A database of this test alone: it breaks the audit in it."""
    name = fresh("audit").replace("-", "_")
    url = database.create_database(name)
    migrate(url)
    yield url
    database.drop_database(name)


@pytest.fixture
async def api(own_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(own_url) as client:
        client.headers.update(bearer(ADMIN))
        yield client


def filled(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace(f"{{{name}}}", text)
        return value
    if isinstance(value, dict):
        return {key: filled(item, names) for key, item in value.items()}
    return value


async def run(api: httpx.AsyncClient, writing: Writing, names: dict[str, str]) -> httpx.Response:
    method, path = writing.route.split(" ")
    values = {name: filled(text, names) for name, text in writing.values.items()}
    url = filled(path, {**names, **values}) + filled(writing.query, names)
    return await api.request(method, url, json=filled(writing.body, names))


def events(url: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(
            "select action || ' ' || object, actor, origin, tenant_id is null, before, after from audit_event"
        ).fetchall()


def everything(url: str) -> dict[str, list[str]]:
    """All rows of all tables of the registry, as texts."""
    with psycopg.connect(url) as connection:
        return {
            name: sorted(row[0] for row in connection.execute(f'select t::text from "{name}" as t').fetchall())  # type: ignore[call-overload]
            for name in metadata.tables
        }


@contextmanager
def refusing(url: str) -> Iterator[None]:
    """No audit can be written in this block."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(REFUSE)
        yield
        connection.execute("drop trigger refuse on audit_event; drop function refuse()")


async def test_every_writing_route_has_an_example(api: httpx.AsyncClient) -> None:
    document = (await api.get("/openapi.json")).json()
    served = {
        f"{method.upper()} {path}"
        for path, methods in document["paths"].items()
        for method in methods
        if method.upper() in WRITING_METHODS
    }
    assert {writing.route for writing in WRITINGS} == served - READING


async def test_each_change_leaves_its_rows_and_without_them_there_is_no_change(
    api: httpx.AsyncClient, own_url: str
) -> None:
    names = {"tenant": fresh("shop")}
    for writing in WRITINGS:
        state = everything(own_url)
        with refusing(own_url):
            refused = await run(api, writing, names)
        assert refused.status_code == 503, f"{writing.route} changes something without an audit"
        assert everything(own_url) == state, f"{writing.route} left something of a change that failed"

        before = events(own_url)
        answer = await run(api, writing, names)
        assert answer.status_code == writing.status, f"{writing.route}: {answer.text}"
        names |= {name: answer.json()[field] for name, field in writing.keep.items()}
        left = [event for event in events(own_url) if event not in before]
        wanted = sorted(filled(event, names) for event in writing.events)
        assert sorted(event[0] for event in left) == wanted, writing.route
        assert {event[1:4] for event in left} == {("bootstrap key", PEER, writing.platform)}, writing.route
        for what, *_, had, has in left:
            verb = what.split(" ")[0].split(".")[1]
            assert (had is None) == (verb in {"create", "freeze", "restore"}), what
            assert (has is None) == (verb in {"delete", "unfreeze"}), what
        assert CANARY not in str(events(own_url))
        assert "lsk_" not in str(events(own_url))
        assert "digest" not in str(events(own_url))


async def test_what_is_so_already_leaves_no_row(api: httpx.AsyncClient, own_url: str) -> None:
    names = {"tenant": fresh("shop")}
    puts = [writing for writing in WRITINGS if writing.route.startswith("PUT ")]
    # An end that is told from now on is another one each time.
    same = [writing for writing in puts if not writing.route.endswith("/freeze")] + [
        writing for writing in WRITINGS if writing.route == "POST /v1/tenants/{tenant}/bindings"
    ]
    for writing in WRITINGS[:7]:
        await run(api, writing, names)
    await run(api, same[-1], names)
    before = events(own_url)
    for writing in same:
        answer = await run(api, writing, names)
        assert answer.status_code == 200, f"{writing.route}: {answer.text}"
    assert events(own_url) == before


async def test_what_is_refused_leaves_no_row(api: httpx.AsyncClient, own_url: str) -> None:
    names = {"tenant": fresh("shop"), "key": "0" * 12, "platform_key": "0" * 12}
    await run(api, WRITINGS[0], names)
    before = events(own_url)
    for writing in WRITINGS:
        if writing.route in {"PUT /v1/tenants/{tenant}", "POST /v1/keys"}:
            continue  # Nothing that they were told can be missing.
        nobody = {**names, "tenant": fresh("none")} if "/v1/tenants/" in writing.route else names
        answer = await run(api, writing, nobody)
        assert answer.status_code in {404, 409}, f"{writing.route}: {answer.text}"
    assert events(own_url) == before
