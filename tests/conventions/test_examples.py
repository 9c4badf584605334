"""Every ScaledObject and TriggerAuthentication that we ship or print is valid for KEDA and understood by us."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml
from pydantic import BaseModel

from lagscale.domain.policy.parsing import parse_policy
from lagscale.errors import FieldError
from services.api.bindings.routes import BindingIn
from services.api.clusters.schemas import ClusterIn
from services.api.monitors.schemas import MonitorIn
from services.api.tenants.schemas import TenantIn
from services.cli.objects.documents import read_documents
from services.cli.objects.manifests import Manifest, parse_manifests
from services.cli.objects.schemas import ApiSchemas
from services.scaler.triggers.metadata import TriggerReader
from tests.conventions.keda_schemas import validate
from tests.support.api_document import api_document

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
    TriggerReader(tick_seconds=5.0).read(trigger["metadata"])


def manifests_of(path: Path) -> list[Manifest]:
    field_errors: list[FieldError] = []
    found = parse_manifests(read_documents([str(path)], field_errors), ApiSchemas(api_document()), {}, field_errors)
    assert field_errors == []
    return list(found.manifests)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda path: path.name)
def test_manifests_are_valid_for_the_api(path: Path) -> None:
    models: dict[str, type[BaseModel]] = {"tenants": TenantIn, "clusters": ClusterIn, "monitors": MonitorIn}
    manifests = manifests_of(path)
    assert {one.ref.kind.plural for one in manifests} == {*models, "bindings"}
    clusters = {one.ref.name for one in manifests if one.ref.kind.plural == "clusters"}
    for one in manifests:
        (models | {"bindings": BindingIn})[one.ref.kind.plural].model_validate(one.spec)
        if one.ref.kind.plural == "monitors":
            assert one.spec["cluster"] in clusters
            parse_policy({name: str(value) for name, value in one.spec["policy"].items()})


def test_the_eleven_services_are_one_file() -> None:
    boxer = {
        f"boxer-{work}-{kind}": (f"lakerunner.boxer.{kind}.{work}", f"lakerunner.boxer.{kind}.{work}")
        for work, kind in (("compact", "logs"), ("compact", "metrics"), ("compact", "traces"), ("rollup", "metrics"))
    }
    segments = {
        f"{work}-{kind}": (f"lakerunner.segments.{kind}.{work}", f"lakerunner.{work}.{kind}")
        for work, kind in (("compact", "logs"), ("compact", "metrics"), ("compact", "traces"), ("rollup", "metrics"))
    }
    ingest = {
        f"ingest-{kind}": (f"lakerunner.objstore.ingest.{kind}", f"lakerunner.ingest.{kind}")
        for kind in ("logs", "metrics", "traces")
    }
    found = {
        one.ref.name: (",".join(one.spec["topics"]), one.spec["consumerGroup"])
        for one in manifests_of(ROOT / "examples" / "eleven-services.yaml")
        if one.ref.kind.plural == "monitors"
    }
    assert found == boxer | segments | ingest
    assert len(found) == 11
