"""A comment at any place of a manifest is kept, and changes nothing else."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import yaml

from services.cli.importing.conversion import convert_all
from services.cli.importing.options import ImportOptions, TriggerOptions
from services.cli.importing.yaml_text import parse_documents
from tests.conventions.keda_schemas import validate

MANIFEST = """\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: orders
  namespace: shop
  annotations:
    team: shop
spec:
  scaleTargetRef:
    name: orders
  minReplicaCount: 1
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        scaleDown:
          stabilizationWindowSeconds: 300
  triggers:
  - type: cpu
    metricType: Utilization
    metadata:
      value: "80"
  - type: kafka
    name: lag
    metadata:
      bootstrapServers: kafka.svc:9092
      consumerGroup: orders
      topic: orders
      lagThreshold: "10"
    authenticationRef:
      name: kafka
      kind: ClusterTriggerAuthentication
    useCachedMetrics: true
  - metadata:
      bootstrapServers: kafka.svc:9092
      consumerGroup: orders
      topic: refunds
    type: kafka
  - type: memory
    metricType: Utilization
    metadata:
      value: "70"
  fallback:
    failureThreshold: 3
    replicas: 2
"""
LINES = MANIFEST.splitlines()
SERVERS = """\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{}'
  creationTimestamp: "2024-05-02T08:11:20Z"
  name: orders
  namespace: shop
  uid: 6c7b9a64
spec:
  scaleTargetRef: {name: orders}
  minReplicaCount: 1
  triggers:
  - type: kafka
    metadata: {bootstrapServers: 'kafka.svc:9092', consumerGroup: orders, topic: orders}
status:
  originalReplicaCount: 1
"""


@cache
def new(text: str, asking: TriggerOptions | None = None) -> str:
    (one,) = convert_all(
        list(parse_documents(text, "manifest")), ImportOptions(asking or TriggerOptions())
    ).converted_objects
    assert one.new is not None
    return one.new


def told(text: str) -> list[str]:
    return [line.partition("mark-")[2].partition("-")[0] for line in text.splitlines() if "mark-" in line]


def plain(text: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def above(number: int, column: int) -> str:
    lines = list(LINES)
    lines.insert(number, f"{' ' * column}# mark-{number}-")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("number", range(len(LINES) + 1))
def test_a_line_of_its_own_is_kept_wherever_it_stands(number: int) -> None:
    following = LINES[min(number, len(LINES) - 1)]
    text = new(above(number, len(following) - len(following.lstrip())))
    assert told(text) == [str(number)]
    assert plain(text) == plain(new(MANIFEST))


@pytest.mark.parametrize("number", range(len(LINES)))
def test_a_comment_beside_a_line_is_kept(number: int) -> None:
    lines = list(LINES)
    lines[number] += f"   # mark-{number}-"
    text = new("\n".join(lines) + "\n")
    assert told(text) == [str(number)]
    assert plain(text) == plain(new(MANIFEST))


def test_all_places_at_once() -> None:
    lines = []
    for number, line in enumerate(LINES):
        lines.append(f"{' ' * (len(line) - len(line.lstrip()))}# mark-{number}-")
        lines.append(f"{line} # mark-{number + 1000}-")
    text = new("\n".join(lines) + "\n")
    assert sorted(told(text)) == sorted(str(n) for number in range(len(LINES)) for n in (number, number + 1000))
    assert plain(text) == plain(new(MANIFEST))
    validate(plain(text))


def test_what_only_a_server_writes_goes_and_its_comments_stay() -> None:
    lines = [f"{line} # mark-{number}-" for number, line in enumerate(SERVERS.splitlines())]
    text = new("\n".join(lines) + "\n")
    assert sorted(told(text), key=int) == [str(number) for number in range(len(lines))]
    assert set(plain(text)) == {"apiVersion", "kind", "metadata", "spec"}
    assert set(plain(text)["metadata"]) == {"name", "namespace"}


def test_untouched_lines_are_the_same_to_the_byte() -> None:
    kept = new(MANIFEST).splitlines()
    assert [line for line in LINES[:21] if line not in kept] == []
    assert kept[: LINES.index("  - type: kafka")] == LINES[: LINES.index("  - type: kafka")]
    assert kept[-7:] == LINES[-7:]


def test_the_client_certificate_stands_in_place_of_the_old_authentication() -> None:
    text = new(MANIFEST, TriggerOptions(push=True, mtls=("ClusterTriggerAuthentication", "keda-client")))
    kafka = [one for one in plain(text)["spec"]["triggers"] if one["type"] == "external-push"]
    reference = {"name": "keda-client", "kind": "ClusterTriggerAuthentication"}
    assert [one["authenticationRef"] for one in kafka] == [reference, reference]
    validate(plain(text))
