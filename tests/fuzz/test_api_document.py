"""The API against its own OpenAPI document: no 5xx, no answer that is not written there, nothing bad taken for good."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from lagscale.store.encryption import generate_key
from lagscale.store.registry.api_keys import PLATFORM_ADMIN, TENANT_VIEWER
from tests.fuzz.api_world import CHANGES, FREE, ROLES, World
from tests.integration.api.test_process import ADMIN, eventually, free_address, running, status
from tests.support.api_document import api_document

pytestmark = pytest.mark.fuzz

#: For each of three callers, half of them as the document wants, half of them not.
EXAMPLES = max(8, int(os.environ.get("LAGSCALE_FUZZ_EXAMPLES", "0")) // 500)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
SETTINGS = settings(
    max_examples=EXAMPLES, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)
OPERATIONS = sorted((path, method) for path, operations in api_document()["paths"].items() for method in operations)
#: What the document's examples cannot know: what is there.
KNOWN_BODIES = {"/v1/tenants/{tenant}/monitors/bulk": {"items": [CHANGES]}}
OFTEN = st.sampled_from((True, True, True, False))
PARAMETERS = ("tenant", "cluster", "monitor", "prefix")


@pytest.fixture(scope="module")
def url(shared_url: str) -> Iterator[str]:
    """A process of the API, so that the server's own answers are seen, too."""
    address = free_address()
    given = {
        "LAGSCALE_DATABASE_URL": shared_url,
        "LAGSCALE_SECRET_KEYS": generate_key(),
        "LAGSCALE_API_PREFLIGHT_TIMEOUT_SECONDS": "0",
        "LAGSCALE_API_RATE_LIMIT": "0",
        "LAGSCALE_LOG_LEVEL": "error",
    }
    with running(address, **given):
        eventually(lambda: status(address, "/readyz") == 200)
        yield f"http://{address}"


@pytest.fixture(scope="module")
def world(url: str) -> Iterator[World]:
    made = World(url, ADMIN)
    yield made
    made.close()


@pytest.fixture(scope="module")
def document() -> Any:
    # Who calls is what the test decides.
    config = schemathesis.Config.from_dict({"generation": {"with-security-parameters": False}})
    return schemathesis.openapi.from_dict(api_document(), config=config)


def asked(case: Case, world: World, role: str, values: dict[str, str]) -> int:
    """Send it, compare the answer with the document, and tell its status."""
    case.path_parameters = {name: values[name] for name in case.path_parameters or {}}
    answer = case.call(base_url=world.url, session=world.session, headers=world.keys[role])
    case.validate_response(answer, checks=CHECKS)
    return answer.status_code


def modes(path: str, method: str) -> tuple[GenerationMode, ...]:
    """What can be wrong in a request: something of its query or body. Any text is a header."""
    operation = api_document()["paths"][path][method]
    queries = [given for given in operation.get("parameters", ()) if given["in"] == "query"]
    both = queries or "requestBody" in operation
    return (GenerationMode.POSITIVE, GenerationMode.NEGATIVE) if both else (GenerationMode.POSITIVE,)


def examples(path: str, method: str) -> dict[str, list[Any]]:
    """Field of the body -> the document's own examples, which are taken more often than what is drawn."""
    content = api_document()["paths"][path][method].get("requestBody", {}).get("content", {})
    name = content.get("application/json", {}).get("schema", {}).get("$ref", "").rpartition("/")[2]
    fields = api_document()["components"]["schemas"].get(name, {}).get("properties", {})
    found = {field: schema["examples"] for field, schema in fields.items() if "examples" in schema}
    if "name" in found:
        # A free one; or the path names the object.
        found["name"] = [FREE] if method == "post" else [None]
    return found | KNOWN_BODIES.get(path, {})


@st.composite
def exemplary(draw: st.DrawFn, cases: st.SearchStrategy[Case], given: dict[str, list[Any]], world: World) -> Case:
    """A case that fits the document, with fields as in its examples, so that more than faults is answered."""
    case = draw(cases)
    if isinstance(case.body, dict) and given:
        drawn = draw(st.just(set()) | st.sets(st.sampled_from(sorted(given))))
        case.body = {
            **{field: value for field, value in case.body.items() if field in drawn},
            **{field: draw(st.sampled_from(values)) for field, values in given.items() if field not in drawn},
        }
    case.query.update({name: known for name, known in world.query.items() if name in case.query and draw(OFTEN)})
    if draw(OFTEN):
        # What is no tag is refused before anything else.
        case.headers.clear()
    return case


@pytest.mark.parametrize(("path", "method"), OPERATIONS, ids=str)
def test_every_answer_is_documented(document: Any, world: World, path: str, method: str) -> None:
    seen: Counter[tuple[str, int]] = Counter()
    world.restore()
    for mode in modes(path, method):
        # Names of objects are not drawn from the document: they would lead nowhere.
        cases = document[path][method].as_strategy(mode, path_parameters=dict.fromkeys(PARAMETERS, "x"))
        if mode is GenerationMode.POSITIVE:
            cases = exemplary(cases, examples(path, method), world)

        @SETTINGS
        @given(case=cases, values=world.names(path, delete=method == "delete"), callers=st.permutations(ROLES))
        def explore(case: Case, values: dict[str, str], callers: list[str]) -> None:
            found = {}
            for role in callers:
                found[role] = asked(case, world, role, values)
                seen[role, found[role]] += 1
            if method != "get" and any(code < 300 for code in found.values()):
                world.restore()

        explore()
    assert method == "get" or all(found >= 400 for role, found in seen if role == TENANT_VIEWER), seen
    reached = {found for role, found in seen if role == PLATFORM_ADMIN}
    # No cluster is looked at here, which is told by a conflict.
    assert any(found < 400 for found in reached) or (path.endswith("/preflight") and 409 in reached), seen
