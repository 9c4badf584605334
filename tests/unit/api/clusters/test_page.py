"""docs/clusters.md: every body on it is one that the API takes, and its lists of properties are those of the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from devstack.certificates import Authority
from lagscale.errors import InvalidInput
from lagscale.kafka.properties import PLATFORM_PROPERTIES, TENANT_PROPERTIES
from lagscale.kafka.security import list_privileged
from services.api.clusters.mechanisms import MECHANISMS
from services.api.clusters.schemas import ClusterIn
from services.api.clusters.security import build_cluster_spec

PAGE = (Path(__file__).parents[4] / "docs/clusters.md").read_text(encoding="utf-8")
CERTIFICATE = Authority.make().certificate
BODIES = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def whole(body: str) -> ClusterIn:
    """The body, with PEM texts where the page leaves them out."""
    pem = {"key": "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----"}
    full = re.sub(
        r'"(\w+)": "-----BEGIN [^"]*"', lambda one: f'"{one[1]}": {json.dumps(pem.get(one[1], CERTIFICATE))}', body
    )
    return ClusterIn.model_validate(json.loads(full))


@pytest.mark.parametrize("body", BODIES)
def test_every_body_is_taken_and_only_what_lends_needs_the_platform(body: str) -> None:
    given = whole(body)
    spec = build_cluster_spec("main", given, platform=True)
    lent = list_privileged(spec.security, spec.properties or {})
    try:
        build_cluster_spec("main", given, platform=False)
        refused = False
    except InvalidInput:
        refused = True
    assert refused == bool(lent)


def test_every_mechanism_has_a_body_or_a_word() -> None:
    used = {build_cluster_spec("main", whole(body), platform=True).security.get("mechanism") for body in BODIES}
    assert {"OAUTHBEARER", "GSSAPI", "SCRAM-SHA-512", None} <= used
    assert [name for name in MECHANISMS if f"`{name}`" not in PAGE and f"`{name.upper()}`" not in PAGE] == []


@pytest.mark.parametrize(
    ("beginning", "listed"),
    [("**Everybody**", TENANT_PROPERTIES), ("**Platform administrators**", PLATFORM_PROPERTIES)],
)
def test_the_lists_of_properties_are_those_of_the_code(beginning: str, listed: dict[str, object]) -> None:
    paragraph = PAGE.partition(beginning)[2].split("\n\n")[1]
    assert re.findall(r"`([^`]+)`", paragraph) == sorted(listed)
