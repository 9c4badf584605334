"""Every error is a problem with a type, a title, a status and a way out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from lagscale.errors import (
    Conflict,
    InvalidInput,
    LagscaleError,
    QuotaExceeded,
    SettingsInvalid,
    StoreTimeout,
)
from lagscale.store.encryption import Keyring, generate_key
from lagscale.store.registry.session import RegistryDatabase
from services.api.app import ApiParts, create_app
from services.api.auth.authenticator import Authenticator
from services.api.auth.rate_limits import TenantRateLimiter
from services.api.problem_types import PROBLEM_TYPES, find_problem_type
from services.api.problems import MEDIA_TYPE

ADMIN = "bootstrap-key-of-this-test"


def family(kind: type[LagscaleError] = LagscaleError) -> list[type[LagscaleError]]:
    return [kind, *(deeper for child in kind.__subclasses__() for deeper in family(child))]


def test_every_error_of_the_family_has_its_status() -> None:
    ours = [kind for kind in family() if kind.__module__ == "lagscale.errors"]
    assert [kind.__name__ for kind in ours if kind not in PROBLEM_TYPES] == []
    assert set(PROBLEM_TYPES) <= set(ours)


def test_a_new_subclass_takes_its_ancestors_status() -> None:
    class Deeper(StoreTimeout):
        """Deeper."""

    assert find_problem_type(Deeper()).status == 503


class BrokenDatabase(RegistryDatabase):
    """Raises what the test wants, instead of opening a tenant's transaction; there is no other store either."""

    error: Exception = RuntimeError("canary-in-the-text")

    def __init__(self) -> None:
        super().__init__("postgresql://nobody@127.0.0.1:1/none")

    def tenant(self, *_: Any, **__: Any) -> Any:
        raise self.error


@pytest.fixture
def database() -> BrokenDatabase:
    return BrokenDatabase()


@pytest.fixture
async def api(database: BrokenDatabase) -> AsyncIterator[httpx.AsyncClient]:
    missing: dict[str, Any] = dict.fromkeys(("verdicts", "rounds", "preflights", "validator"))
    parts = ApiParts(
        database=database,
        authenticator=Authenticator(database, ADMIN),
        tenant_rates=TenantRateLimiter(),
        keyring=Keyring(generate_key()),
        tick_seconds=1.0,
        **missing,
    )
    transport = httpx.ASGITransport(create_app(parts), raise_app_exceptions=False)
    headers = {"Authorization": f"Bearer {ADMIN}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://api", headers=headers) as client:
        yield client


def problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == MEDIA_TYPE
    body: dict[str, Any] = answer.json()
    assert set(body) == {"type", "title", "status", "detail", "field", "remediation", "errors"}
    assert body["status"] == status
    assert body["type"].startswith("urn:lagscale:problem:")
    assert body["title"]
    assert body["detail"]
    return body


async def test_a_path_that_is_none_is_not_found(api: httpx.AsyncClient) -> None:
    assert problem(await api.get("/v2/elsewhere"), 404)["type"].endswith(":not-found")


async def test_a_method_that_is_none_is_refused(api: httpx.AsyncClient) -> None:
    answer = await api.patch("/v1/tenants")
    problem(answer, 405)
    assert "GET" in answer.headers["allow"]


@pytest.mark.parametrize(
    "header", [{}, {"Authorization": ""}, {"Authorization": "Basic abc"}, {"Authorization": "Bearer wrong"}]
)
async def test_without_a_valid_key_nothing_is_told(api: httpx.AsyncClient, header: dict[str, str]) -> None:
    api.headers.pop("Authorization")
    answer = await api.get("/v1/tenants", headers=header)
    assert problem(answer, 401)["errors"] == []
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_faults_of_a_body_name_their_fields_in_the_callers_words(api: httpx.AsyncClient) -> None:
    body = {"name": "A b", "minSamplingSeconds": "canary-1", "extra": 1, "displayName": "x\u0000y"}
    field_errors = problem(await api.post("/v1/tenants", json=body), 422)["errors"]
    assert {field_error["field"] for field_error in field_errors} == {
        "name",
        "minSamplingSeconds",
        "extra",
        "displayName",
    }
    assert "canary" not in str(field_errors)


async def test_a_body_that_is_no_json_is_a_fault_of_the_body(api: httpx.AsyncClient) -> None:
    answer = await api.post("/v1/tenants", content=b"{", headers={"Content-Type": "application/json"})
    assert [field_error["field"] for field_error in problem(answer, 422)["errors"]] == ["body"]


@pytest.mark.parametrize(("query", "field"), [("limit=0", "limit"), ("limit=x", "limit"), ("limit=501", "limit")])
async def test_faults_of_a_query_name_the_parameter(api: httpx.AsyncClient, query: str, field: str) -> None:
    field_errors = problem(await api.get(f"/v1/tenants?{query}"), 422)["errors"]
    assert [field_error["field"] for field_error in field_errors] == [field]


@pytest.mark.parametrize("name", ["UPPER", "-x", "a%00b", "a" * 64, "%F0%9F%92%A9"])
async def test_a_name_that_none_can_have_is_not_found(api: httpx.AsyncClient, name: str) -> None:
    problem(await api.get(f"/v1/tenants/{name}"), 404)


async def test_a_defect_is_a_problem_without_its_text_but_logged(api: httpx.AsyncClient) -> None:
    with capture_logs() as lines:
        assert "canary" not in str(problem(await api.get("/v1/tenants/shop"), 500))
    routes = {line.get("route") for line in lines if line["event"] == "request_error"}
    assert routes == {"/v1/tenants/{tenant}"}


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (Conflict(), 409, "conflict"),
        (QuotaExceeded(), 429, "quota-exceeded"),
        (StoreTimeout(), 503, "store-timeout"),
        (SettingsInvalid("the setting is bad"), 500, "settings-invalid"),
        (InvalidInput.of("a", "b"), 422, "invalid-input"),
    ],
)
async def test_the_family_keeps_its_text(
    api: httpx.AsyncClient, database: BrokenDatabase, error: LagscaleError, status: int, kind: str
) -> None:
    database.error = error
    answer = await api.get("/v1/tenants/shop")
    body = problem(answer, status)
    assert (body["type"], body["detail"]) == (f"urn:lagscale:problem:{kind}", error.message)
    assert ("retry-after" in answer.headers) == (status == 503)


async def test_a_bad_if_match_is_a_fault(api: httpx.AsyncClient) -> None:
    answer = await api.delete("/v1/tenants/shop", headers={"If-Match": "yesterday"})
    assert [field_error["field"] for field_error in problem(answer, 422)["errors"]] == ["If-Match"]


async def test_every_operation_is_described_and_its_errors_are_problems(api: httpx.AsyncClient) -> None:
    document = (await api.get("/openapi.json")).json()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation.get("summary"), f"{method} {path}"
            for status, answer in operation["responses"].items():
                if path.startswith("/v1") and int(status) >= 400 and answer.get("content"):
                    assert list(answer["content"]) == [MEDIA_TYPE], f"{method} {path} {status}"
            if path.startswith("/v1"):
                assert operation["security"], f"{method} {path}"


async def test_every_payload_has_an_example(api: httpx.AsyncClient) -> None:
    schemas = (await api.get("/openapi.json")).json()["components"]["schemas"]
    assert "HTTPValidationError" not in schemas
    for name, schema in schemas.items():
        if name.startswith("Listing"):
            continue  # Its items have examples.
        examples = [True for field in schema["properties"].values() if "examples" in field] or schema.get("examples")
        assert examples, name


async def test_liveness_needs_neither_key_nor_store(api: httpx.AsyncClient) -> None:
    api.headers.pop("Authorization")
    assert (await api.get("/livez")).status_code == 200
    assert "lagscale_api_requests_total" in (await api.get("/metrics")).text
