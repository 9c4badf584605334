"""The manifests: they build, and say of ports, probes, variables and files what the services say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conventions.services import DEPLOYED

Objects = list[dict[str, Any]]
Build = Callable[[str], Objects]

KUSTOMIZATIONS = ("k8s/base", "k8s/overlays/dev", "k8s/overlays/production", "k8s/overlays/production-mtls")
SERVICES = set(DEPLOYED)
#: What runs once, beside the services.
WORKLOADS = SERVICES | {"migrate"}

pytestmark = pytest.mark.parametrize("folder", KUSTOMIZATIONS)


@pytest.fixture
def objects(folder: str, kustomized: Build) -> Objects:
    return kustomized(folder)


def of_kind(objects: Objects, *kinds: str) -> Objects:
    return [item for item in objects if item["kind"] in kinds]


def component(item: dict[str, Any]) -> str:
    return str(item["metadata"]["labels"]["app.kubernetes.io/component"])


def pods(objects: Objects) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Component, pod specification, and its one container."""
    for item in of_kind(objects, "Deployment", "Job"):
        spec = item["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        yield component(item), spec, container


def variables(container: dict[str, Any], objects: Objects) -> dict[str, str | None]:
    """Name -> value of every variable of a container; None where a Secret holds the value."""
    maps = {item["metadata"]["name"]: item["data"] for item in of_kind(objects, "ConfigMap")}
    told: dict[str, str | None] = {}
    for source in container.get("envFrom", ()):
        told |= maps[source["configMapRef"]["name"]]
    return told | {entry["name"]: entry.get("value") for entry in container["env"]}


def test_each_workload_is_there(objects: Objects) -> None:
    assert {component(item) for item in of_kind(objects, "Deployment")} == SERVICES
    assert {component(item) for item in of_kind(objects, "Job")} == {"migrate"}


def test_every_variable_is_known_to_its_service(objects: Objects, settings_of: Callable[[str], set[str]]) -> None:
    unknown = {
        f"{name}: {variable}"
        for name, _, container in pods(objects)
        for variable in variables(container, objects)
        if variable not in settings_of("cli" if name == "migrate" else name)
    }
    assert unknown == set()


def test_secrets_come_from_secrets(objects: Objects) -> None:
    for name, _, container in pods(objects):
        told = variables(container, objects)
        held = {variable for variable, value in told.items() if value is None}
        assert held == set(told) & {"LAGSCALE_DATABASE_URL", "LAGSCALE_SECRET_KEYS", "LAGSCALE_API_ADMIN_KEY"}, name


def test_every_secret_is_explained(root: Path, objects: Objects) -> None:
    text = (root / "docs" / "operations.md").read_text(encoding="utf-8")
    for _, _, container in pods(objects):
        for entry in container["env"]:
            if "valueFrom" in entry:
                reference = entry["valueFrom"]["secretKeyRef"]
                assert f"generic {reference['name']}" in text
                assert f"--from-literal={reference['key']}=" in text


def test_ports_are_those_that_the_services_listen_on(objects: Objects) -> None:
    for name, _, container in pods(objects):
        told = variables(container, objects)
        listens = {int((told[v] or "").rpartition(":")[2]) for v in told if v.endswith("_LISTEN")}
        assert {port["containerPort"] for port in container.get("ports", ())} == listens, name


def test_probes_ask_over_http_what_they_should(objects: Objects) -> None:
    for name, _, container in pods(objects):
        if name == "migrate":
            continue
        named = {port["name"] for port in container["ports"]}
        for probe, path in (("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")):
            asked = container[probe]["httpGet"]
            assert asked["path"] == path, (name, probe)
            assert asked["port"] in named - {"grpc"}, (name, probe)


def test_services_find_their_pods_and_ports(objects: Objects) -> None:
    deployments = {component(item): item["spec"]["template"] for item in of_kind(objects, "Deployment")}
    for service in of_kind(objects, "Service"):
        template = deployments[component(service)]
        assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
        assert "app.kubernetes.io/component" in service["spec"]["selector"]
        named = {port["name"]: port["containerPort"] for port in template["spec"]["containers"][0]["ports"]}
        for port in service["spec"]["ports"]:
            assert named[port["targetPort"]] == port["port"]


def test_keda_finds_every_replica_even_when_none_is_ready(objects: Objects) -> None:
    (scaler,) = (item for item in of_kind(objects, "Service") if component(item) == "scaler")
    assert scaler["spec"]["clusterIP"] == "None"
    assert scaler["spec"]["publishNotReadyAddresses"] is True
    assert [port["name"] for port in scaler["spec"]["ports"]] == ["grpc"]


def test_budgets_leave_room_to_drain_a_node(objects: Objects) -> None:
    replicas = {component(item): item["spec"]["replicas"] for item in of_kind(objects, "Deployment")}
    for budget in of_kind(objects, "PodDisruptionBudget"):
        name = budget["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"]
        assert budget["spec"]["minAvailable"] < replicas[name]


def test_pods_hold_little(objects: Objects) -> None:
    accounts = {item["metadata"]["name"]: item for item in of_kind(objects, "ServiceAccount")}
    for name, spec, container in pods(objects):
        assert spec["enableServiceLinks"] is False, name
        assert spec["automountServiceAccountToken"] is False, name
        assert accounts[spec["serviceAccountName"]]["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        inside = container["securityContext"]
        assert inside["readOnlyRootFilesystem"] is True, name
        assert inside["allowPrivilegeEscalation"] is False, name
        assert inside["capabilities"] == {"drop": ["ALL"]}, name
        assert {"cpu", "memory"} <= set(container["resources"]["requests"]), name
        assert "memory" in container["resources"]["limits"], name


def test_the_local_cache_is_an_empty_directory(objects: Objects) -> None:
    for name, spec, container in pods(objects):
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
        cache = variables(container, objects)["LAGSCALE_CACHE_DIR"]
        assert "emptyDir" in volumes[mounts[cache or ""]], name


def test_images_are_of_this_version_and_have_a_dockerfile(root: Path, objects: Objects) -> None:
    version = re.search(r'^version = "(.+)"', (root / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert version is not None
    for name, spec, container in pods(objects):
        image, _, tag = container["image"].partition(":")
        assert tag == version[1]
        dockerfile = root / "docker" / f"{image.removeprefix('lagscale/')}.Dockerfile"
        text = dockerfile.read_text(encoding="utf-8")
        assert f"--uid {spec['securityContext']['runAsUser']} " in text, name
        exposed = re.search(r"^EXPOSE (.+)$", text, re.MULTILINE)
        ports = {str(port["containerPort"]) for port in container.get("ports", ())}
        assert set(exposed[1].split() if exposed else ()) == ports, name


def test_certificates_are_mounted_as_a_folder_where_the_scaler_looks_for_them(folder: str, objects: Objects) -> None:
    _, spec, container = next(pod for pod in pods(objects) if pod[0] == "scaler")
    told = variables(container, objects)
    files = {name: path for name, path in told.items() if "_TLS_" in name}
    assert (told.get("LAGSCALE_SCALER_GRPC_SECURITY") == "mtls") is folder.endswith("mtls") is (len(files) == 3)
    for path in files.values():
        mounts = [mount for mount in container["volumeMounts"] if (path or "").startswith(mount["mountPath"] + "/")]
        # Kubernetes replaces the files of a folder, and never a single file.
        assert [mount.keys() for mount in mounts] == [{"name", "mountPath", "readOnly"}]
        (secret,) = (v["secret"] for v in spec["volumes"] if v["name"] == mounts[0]["name"])
        assert secret["secretName"] == "lagscale-scaler-tls"
        # Readable by the group that fsGroup makes the service's.
        assert secret["defaultMode"] == 0o440
