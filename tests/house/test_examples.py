"""Every ScaledObject and TriggerAuthentication that we ship or print is valid for KEDA and understood by us."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from lagscale.domain.policy import Policy
from services.api.payloads import BindingIn, ClusterIn, MonitorIn, TenantIn
from services.scaler.metadata import Reader
from tests.house.keda_schemas import validate

ROOT = Path(__file__).parents[2]


def documents() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted((ROOT / "k8s" / "examples").glob("*.yaml")):
        for item in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            yield path.name, item
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for block in re.findall(r"```yaml\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL):
            for item in yaml.safe_load_all(block):
                if isinstance(item, dict) and str(item.get("apiVersion", "")).startswith("keda.sh/"):
                    yield path.name, item


DOCUMENTS = list(documents())
TRIGGERS = [(name, trigger) for name, item in DOCUMENTS for trigger in item["spec"].get("triggers", ())]


def test_the_examples_are_there() -> None:
    names = {name for name, _ in DOCUMENTS}
    assert {"scaledobject.yaml", "scaledobject-inline.yaml", "scaledobject-push.yaml", "README.md"} <= names
    assert {trigger["type"] for _, trigger in TRIGGERS} >= {"external", "external-push"}


@pytest.mark.parametrize(("name", "item"), DOCUMENTS)
def test_examples_are_valid_for_keda(name: str, item: dict[str, Any]) -> None:
    validate(item)


def test_an_unknown_field_would_be_seen() -> None:
    item = next(item for _, item in DOCUMENTS if item["kind"] == "ScaledObject")
    slip = item | {"spec": item["spec"] | {"minReplicas": 1}}
    with pytest.raises(jsonschema.ValidationError, match="minReplicas"):
        validate(slip)


@pytest.mark.parametrize(("name", "trigger"), TRIGGERS)
def test_examples_ask_the_service_that_the_manifests_make(
    name: str, trigger: dict[str, Any], kustomized: Callable[[str], list[dict[str, Any]]]
) -> None:
    service = next(
        item
        for item in kustomized("k8s/overlays/production")
        if item["kind"] == "Service" and item["spec"].get("clusterIP") == "None"
    )
    (port,) = service["spec"]["ports"]
    told = service["metadata"]
    assert trigger["metadata"]["scalerAddress"] == f"{told['name']}.{told['namespace']}.svc:{port['port']}"


@pytest.mark.parametrize(("name", "trigger"), TRIGGERS)
def test_metadata_values_are_strings(name: str, trigger: dict[str, Any]) -> None:
    assert all(isinstance(value, str) for value in trigger["metadata"].values())


@pytest.mark.parametrize(("name", "trigger"), TRIGGERS)
def test_examples_are_understood_by_the_scaler(name: str, trigger: dict[str, Any]) -> None:
    Reader(tick_seconds=5.0).read(trigger["metadata"])


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.json")), ids=lambda path: path.name)
def test_registrations_are_valid_for_the_api(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    TenantIn.model_validate(document["tenant"])
    clusters = {ClusterIn.model_validate(item).name for item in document["clusters"]}
    for item in document["bindings"]:
        BindingIn.model_validate(item)
    for item in document["monitors"]:
        assert MonitorIn.model_validate(item).cluster in clusters
        Policy.parse({name: str(value) for name, value in item["policy"].items()})
