"""Every error names its type, what of the request is at fault, and what to do: by class, by route, by field."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from lagscale import errors
from lagscale.errors import LagscaleError
from services.api.problem_types import (
    FRAMEWORK_PROBLEM_TYPES,
    MAX_BODY_BYTES,
    PROBLEM_TYPES,
    TYPE_PREFIX,
)
from services.api.problems import MEDIA_TYPE
from tests.support.api_document import api_document
from tests.unit.api.test_problems import ADMIN, BrokenDatabase, api, database

__all__ = ["api", "database"]

PAGE = Path(__file__).parents[3] / "docs" / "errors.md"
TYPES = {kind.uri for kind in (*PROBLEM_TYPES.values(), *FRAMEWORK_PROBLEM_TYPES)}
JSON = {"Content-Type": "application/json"}
CANARY = "C4nary-in-the-input"
#: One of them is wrong for any field that can be wrong at all.
WRONG: tuple[Any, ...] = (
    [{"key": CANARY}],
    {"key": [CANARY]},
    f"{CANARY}\0",
    CANARY * 99,
    -(10**9),
    1.5,
    None,
    [],
    CANARY,
)
#: What a fault of a field says: what must be there, or that it must go.
SAYS = re.compile(r"must (be|have|contain|read|not)\b|unknown field; correct its name, or omit it")


def problem(answer: httpx.Response, status: int, field: str | None) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == MEDIA_TYPE
    body: dict[str, Any] = answer.json()
    assert body["type"] in TYPES
    assert (body["status"], body["field"]) == (status, field)
    for text in (body["title"], body["remediation"]):
        assert re.fullmatch(r"[A-Z].{10,}[.>`]", text), text
    assert len(body["detail"]) > 5
    assert CANARY not in answer.text
    return body


def test_every_type_is_told_and_none_is_stale() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"^### `([^`]+)`", text, re.MULTILINE)) == TYPES
    # A defect and an error of the family that is no subclass are the same to the caller.
    assert len(TYPES) == len(PROBLEM_TYPES) + len(FRAMEWORK_PROBLEM_TYPES) - 1


def test_only_where_nothing_of_the_request_is_at_fault_no_field_is() -> None:
    without = {kind for kind in (*PROBLEM_TYPES.values(), *FRAMEWORK_PROBLEM_TYPES) if kind.field is None}
    # Of a quota, what is used up is named where it is raised.
    assert {kind.status for kind in without} == {429, 500, 502, 503}
    assert [
        kind
        for kind in (*PROBLEM_TYPES.values(), *FRAMEWORK_PROBLEM_TYPES)
        if kind.status >= 500 and kind.field is not None
    ] == []


def raised(kind: type[LagscaleError]) -> LagscaleError:
    return errors.InvalidInput.of("policy.x", "must be y") if kind is errors.InvalidInput else kind()


@pytest.mark.parametrize("kind", PROBLEM_TYPES, ids=lambda kind: kind.__name__)
async def test_every_class_of_the_family_is_a_whole_problem(
    api: httpx.AsyncClient, database: BrokenDatabase, kind: type[LagscaleError]
) -> None:
    database.error = raised(kind)
    wanted = PROBLEM_TYPES[kind]
    body = problem(
        await api.get("/v1/tenants/shop"), wanted.status, "policy.x" if kind is errors.InvalidInput else wanted.field
    )
    assert body["type"] == wanted.uri
    assert body["remediation"] == wanted.remediation


async def test_an_error_that_names_its_field_is_believed(api: httpx.AsyncClient, database: BrokenDatabase) -> None:
    database.error = errors.Conflict("Taken.", field="name")
    problem(await api.get("/v1/tenants/shop"), 409, "name")


async def test_a_defect_is_a_whole_problem(api: httpx.AsyncClient, database: BrokenDatabase) -> None:
    database.error = RuntimeError(CANARY)
    body = problem(await api.get("/v1/tenants/shop"), 500, None)
    assert body["type"] == f"{TYPE_PREFIX}internal-error"


@pytest.mark.parametrize(
    ("method", "path", "status", "field"),
    [
        ("GET", f"/v1/{CANARY}", 404, "path"),
        ("GET", f"/{CANARY}/../..", 404, "path"),
        ("GET", "/v1/tenants/", 404, "path"),
        ("PATCH", f"/v1/tenants/{CANARY}", 405, "method"),
        (f"X{CANARY.upper()}", "/v1/tenants", 405, "method"),
        ("POST", "/metrics", 405, "method"),
    ],
)
async def test_what_leads_to_no_route_is_a_whole_problem(
    api: httpx.AsyncClient, method: str, path: str, status: int, field: str
) -> None:
    answer = await api.request(method, path)
    problem(answer, status, field)
    assert ("Allow" in answer.headers) == (status == 405)


async def chunks(size: int, count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b" " * size


async def test_a_body_that_is_too_large_is_refused_whatever_it_claims(api: httpx.AsyncClient) -> None:
    claimed = await api.post("/v1/tenants", content=b" " * (MAX_BODY_BYTES + 1), headers=JSON)
    streamed = await api.post("/v1/tenants", content=chunks(MAX_BODY_BYTES // 4, 5), headers=JSON)
    for answer in (claimed, streamed):
        assert problem(answer, 413, "body")["type"] == f"{TYPE_PREFIX}content-too-large"


async def test_a_body_that_is_just_not_too_large_is_read(api: httpx.AsyncClient) -> None:
    answer = await api.post("/v1/tenants", content=b"{" + b" " * (MAX_BODY_BYTES - 1), headers=JSON)
    problem(answer, 422, "body")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": CANARY},
    ],
)
async def test_a_body_that_is_not_sent_as_json_is_told_so(api: httpx.AsyncClient, headers: dict[str, str]) -> None:
    answer = await api.post("/v1/tenants", content=b'{"name": "shop"}', headers=headers)
    assert problem(answer, 415, "Content-Type")["type"] == f"{TYPE_PREFIX}unsupported-media-type"


async def test_who_calls_is_asked_before_what_is_sent(api: httpx.AsyncClient) -> None:
    api.headers.pop("Authorization")
    problem(await api.post("/v1/tenants", content=b"x"), 401, "Authorization")
    problem(await api.post("/v1/tenants", json={CANARY: CANARY}), 401, "Authorization")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        CANARY.encode(),
        b'{"name": "shop"' + CANARY.encode(),
        '{"name": "shöp"}'.encode("latin-1"),
        b"\xff\xfe\xff",
        b"\x1f\x8b\x08\x00gzip",
        b"[" * 100_000,
        b"[]",
        b"null",
        b"17",
        f'"{CANARY}"'.encode(),
    ],
)
async def test_a_body_that_is_no_object_is_a_fault_of_the_body(api: httpx.AsyncClient, content: bytes) -> None:
    body = problem(await api.post("/v1/tenants", content=content, headers=JSON), 422, "body")
    assert [SAYS.match(field_error["text"]) is not None for field_error in body["errors"]] == [True]


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "image/*;q=0.1", "", CANARY])
async def test_whatever_is_accepted_each_answer_has_its_one_form(api: httpx.AsyncClient, accept: str) -> None:
    headers = {"Accept": accept}
    assert (await api.get("/livez", headers=headers)).json() == {"status": "ok"}
    problem(await api.get("/v1/elsewhere", headers=headers), 404, "path")


def bodies() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(method, path, schema) of everything that takes a body."""
    for path, found in api_document()["paths"].items():
        for method, operation in found.items():
            if "requestBody" in operation:
                name = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
                yield method, path, api_document()["components"]["schemas"][name]


def inner(schema: dict[str, Any]) -> dict[str, Any]:
    """The object's schema within a reference, a choice or a list; empty where it has none."""
    for part in (schema, *schema.get("anyOf", ()), schema.get("items", {})):
        if "$ref" in part:
            found: dict[str, Any] = api_document()["components"]["schemas"][part["$ref"].rpartition("/")[2]]
            return found
    return {}


def fields(schema: dict[str, Any], way: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """All fields of a body, also within objects and lists, as a way to each."""
    for name, field in schema.get("properties", {}).items():
        listed = ("0",) if field.get("type") == "array" else ()
        yield (*way, name)
        yield from fields(inner(field), (*way, name, *listed))


BODIES = [(method, path, way) for method, path, schema in bodies() for way in fields(schema)]


def body_with(way: tuple[str, ...], value: Any) -> Any:
    for step in reversed(way):
        value = [value] if step == "0" else {step: value}
    return value


def parameters_of(path: str) -> str:
    return re.sub(r"\{\w+\}", "shop", path)


async def test_a_name_of_a_field_is_shown_in_part_where_it_has_no_end(api: httpx.AsyncClient) -> None:
    answer = await api.post("/v1/tenants", json={"x" * 100_000: 1})
    assert problem(answer, 422, answer.json()["field"])["field"].startswith("xxx")
    assert len(answer.content) < 2000


def test_all_bodies_are_met() -> None:
    assert len(BODIES) > 60
    assert ("items", "0", "put", "policy") in {way for _, _, way in BODIES}


ROUTES = sorted({(method, path) for method, path, _ in BODIES})


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_a_wrong_field_is_named_with_what_must_be_there(api: httpx.AsyncClient, method: str, path: str) -> None:
    for way in (way for *route, way in BODIES if route == [method, path]):
        named, refused = ".".join(way), 0
        for value in WRONG:
            # Whatever is right so far finds a store that is away.
            answer = await api.request(method, parameters_of(path), json=body_with(way, value))
            if answer.status_code != 422:
                continue
            body = problem(answer, 422, answer.json()["errors"][0]["field"])
            for field_error in body["errors"]:
                assert SAYS.search(field_error["text"]), field_error
            refused += any(field_error["field"].startswith(named) for field_error in body["errors"])
        assert refused, f"nothing is wrong for {named}"


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_an_unknown_field_and_a_missing_one_are_named(api: httpx.AsyncClient, method: str, path: str) -> None:
    (schema,) = (schema for found, where, schema in bodies() if (found, where) == (method, path))
    body = (await api.request(method, parameters_of(path), json={"unknownHere": CANARY})).json()
    texts = {field_error["field"]: field_error["text"] for field_error in body["errors"]}
    assert body["field"] in texts
    assert texts.pop("unknownHere") == "unknown field; correct its name, or omit it"
    assert texts == dict.fromkeys(schema.get("required", ()), "must be given")


QUERIES = [
    (method, path, names)
    for path, found in api_document()["paths"].items()
    for method, operation in found.items()
    if (names := [given["name"] for given in operation.get("parameters", ()) if given["in"] == "query"])
]


@pytest.mark.parametrize(("method", "path", "names"), QUERIES, ids=str)
async def test_a_wrong_parameter_is_named_with_what_must_be_there(
    api: httpx.AsyncClient, method: str, path: str, names: list[str]
) -> None:
    for name in names:
        answer = await api.request(method, parameters_of(path), params={name: f"{CANARY}\0" * 999})
        found = [field_error for field_error in answer.json()["errors"] if field_error["field"] == name]
        assert [SAYS.search(field_error["text"]) is not None for field_error in found] == [True], (name, answer.text)
        assert CANARY not in answer.text
        assert ADMIN not in answer.text
