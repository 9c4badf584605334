"""From KEDA's manifests to registered monitors: `lagscale import`, `apply`, `compare` and `scaledobject` in their order."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.conventions.keda_schemas import validate
from tests.integration.cli.conftest import Api, fresh
from tests.support.command_line import Command

pytestmark = pytest.mark.integration

MANIFESTS = """
apiVersion: keda.sh/v1alpha1
kind: TriggerAuthentication
metadata: {{name: kafka, namespace: {namespace}}}
spec:
  secretTargetRef:
    - {{parameter: username, name: kafka, key: user}}
    - {{parameter: password, name: kafka, key: password}}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {{name: orders, namespace: {namespace}}}
spec:
  scaleTargetRef: {{name: orders}}
  minReplicaCount: 1
  maxReplicaCount: 7
  fallback: {{failureThreshold: 3, replicas: 2}}
  triggers:
    - type: kafka
      metadata:
        bootstrapServersFromEnv: KAFKA_SERVERS
        consumerGroup: orders
        topic: orders
        lagThreshold: "40"
        sasl: scram_sha512
        tls: enable
      authenticationRef: {{name: kafka}}
    - type: kafka
      name: open
      metadata: {{bootstrapServers: 'b:9092,a:9092', consumerGroup: orders, excludePersistentLag: "true"}}
"""


@pytest.fixture
def namespace() -> str:
    return fresh("shop")


@pytest.fixture
def out(tmp_path: Path, command: Command, namespace: str) -> Path:
    """What an import has written."""
    file = tmp_path / "manifests.yaml"
    file.write_text(MANIFESTS.format(namespace=namespace))
    ran = command("import", "-f", str(file), "--out", str(tmp_path / "out"), "--with-tenants")
    assert ran.code == 0, ran.err
    return tmp_path / "out"


def variables(namespace: str) -> dict[str, str]:
    stem = f"KAFKA_{namespace.upper().replace('-', '_')}_KAFKA_"
    return {
        f"{stem}BOOTSTRAP_SERVERS": "kafka:9093",
        f"{stem}USERNAME": "keda",
        f"{stem}PASSWORD": "secret-of-the-test",
    }


def test_apply_names_what_the_manifests_do_not_hold(command: Command, out: Path, namespace: str, api: Api) -> None:
    ran = command("apply", "-f", str(out / "register"))
    assert ran.code == 2
    for name in variables(namespace):
        assert name in ran.err
    for field in ("spec.bootstrapServers", "spec.security.username", "spec.secrets.password"):
        assert field in ran.err
    assert namespace not in {one["name"] for one in api("GET", "/tenants?limit=500")["items"]}


def test_what_is_imported_is_registered_compared_and_asked_for(
    command: Command, out: Path, namespace: str, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in variables(namespace).items():
        monkeypatch.setenv(name, text)
    ran = command("apply", "-f", str(out / "register"))
    assert ran.code == 0, ran.err
    assert command("diff", "-f", str(out / "register")).code == 0
    clusters = {one["name"]: one for one in api("GET", f"/tenants/{namespace}/clusters")["items"]}
    assert {name: one["bootstrapServers"] for name, one in clusters.items()} == {
        "a": ["a:9092", "b:9092"], "kafka": ["kafka:9093"],
    }  # fmt: skip
    assert clusters["kafka"]["hasSecrets"]
    monitors = {one["name"]: one for one in api("GET", f"/tenants/{namespace}/monitors")["items"]}
    first, second = monitors["orders-orders"], monitors["orders-open"]
    assert (first["policy"]["lagThreshold"], first["policy"]["holdSeconds"]) == ("40", "0")
    assert (second["policy"]["stuckAfterSeconds"], second["topics"]) == ("300", None)
    compared = command("compare", "--imported", str(out), "--hours", "1")
    assert compared.code == 0, compared.err
    assert f"{namespace}/orders-orders" in compared.out
    printed = command("scaledobject", f"{namespace}/orders-orders", "--max", "7")
    assert printed.code == 0, printed.err
    found = yaml.safe_load(printed.out)
    validate(found)
    assert found["metadata"]["namespace"] == namespace
    for file in (out / "batch-001" / "new").iterdir():
        (scaled,) = yaml.safe_load_all(file.read_text())
        validate(scaled)
        asked = {trigger["metadata"]["serviceType"] for trigger in scaled["spec"]["triggers"]}
        assert asked == set(monitors)


def test_no_secret_is_in_what_an_import_writes(out: Path) -> None:
    assert [path for path in out.rglob("*") if path.is_file() and "secret-of-the-test" in path.read_text()] == []
