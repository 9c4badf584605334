"""Documents as manifests: every error with line, field and remediation, and no value of a secret."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lagscale.errors import FieldError
from services.cli.objects.documents import read_documents
from services.cli.objects.kinds import KINDS, MONITOR
from services.cli.objects.manifests import DeclaredObjects, parse_manifests, read_refs
from services.cli.objects.schemas import ApiSchemas
from tests.support.api_document import api_document

SCHEMAS = ApiSchemas(api_document())


def manifests(tmp_path: Path, text: str, **environ: str) -> tuple[DeclaredObjects, list[str]]:
    file = tmp_path / "m.yaml"
    file.write_text(text)
    field_errors: list[FieldError] = []
    found = parse_manifests(read_documents([str(file)], field_errors), SCHEMAS, environ, field_errors)
    return found, [str(field_error).removeprefix(f"{file}:") for field_error in field_errors]


CLUSTER = "kind: Cluster\nmetadata: {name: c, tenant: t}\nspec:\n  bootstrapServers: [a:1]\n"
MONITOR_HEAD = "kind: Monitor\nmetadata: {name: m, tenant: t}\nspec:\n  cluster: c\n  consumerGroup: g\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("just text", ["1: document: must be a mapping with kind, metadata and spec"]),
        ("kind: Monitor", ["1: metadata: is required, with the name and the tenant"]),
        ("metadata: {name: m}", ["1: kind: is required"]),
        ("kind: ScaledObject\nmetadata: {}",
         ["1: kind: unknown kind; valid: Binding, Cluster, Monitor, Tenant"]),
        ("kind: cluster\nmetadata: {}", ["1: kind: unknown kind; did you mean Cluster?"]),
        ("kind: Tenant\nmetadata: {name: t}\nspce: {}", ["3: spce: unknown field; did you mean spec?"]),
        ("apiVersion: v1\nkind: Tenant\nmetadata: {name: t}",
         ["1: apiVersion: must be lagscale/v1, or omitted"]),
        ("kind: Tenant\nmetadata:\n  Name: t",
         ["3: metadata.Name: unknown field; did you mean name?", "2: metadata.name: is required"]),
        ("kind: Tenant\nmetadata: {name: Shop}",
         ["2: metadata.name: must be 1 to 63 of a-z, 0-9 and -, with no - at either end"]),
        ("kind: Tenant\nmetadata: {name: 5}",
         ["2: metadata.name: must be 1 to 63 of a-z, 0-9 and -, with no - at either end; quote it"]),
        ("kind: Tenant\nmetadata: {name: t, tenant: u}",
         ["2: metadata.tenant: must be the tenant's own name, or omitted"]),
        ("kind: Monitor\nmetadata:\n  name: m\nspec: {}",
         ["2: metadata.tenant: is required", "4: spec.cluster: is required", "4: spec.consumerGroup: is required"]),
        ("kind: Monitor\nmetadata:\n  name: m\n  namespace: shop\nspec:\n  cluster: c\n  consumerGroup: g\n  topics: 5",
         ["4: metadata.namespace: objects belong to a tenant, not to a namespace: set metadata.tenant, and bind "
          "namespaces with a Binding", "2: metadata.tenant: is required", "8: spec.topics: must be a list"]),
        ("apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: m, namespace: shop}\nspec: {triggers: []}",
         ["2: kind: ScaledObject is an object of KEDA: apply it with `kubectl apply`, or convert its kafka triggers with "
          "`lagscale import`"]),
        ("kind: Cluster\nmetadata: {name: c, tenant: t}\nspec:\n  bootstrapServers: [a:1]\n  secrets:\n    pasword: x",
         ["6: cluster t/c: spec.secrets.pasword: unknown field; did you mean password?"]),
        ("kind: Tenant\nmetadata: {name: t}\nspec: 5", ["3: tenant t: spec: must be a mapping"]),
        ("kind: Tenant\nmetadata: {name: t}\nspec:\n  maxMonitors: many",
         ["4: tenant t: spec.maxMonitors: must be an integer"]),
        ("kind: Tenant\nmetadata: {name: t}\nspec:\n  maxMonitors: -1",
         ["4: tenant t: spec.maxMonitors: must be at least 0"]),
        ("kind: Tenant\nmetadata: {name: t}\nspec:\n  displayName: 5",
         ["4: tenant t: spec.displayName: must be a string; quote it"]),
        ("kind: Tenant\nmetadata: {name: t}\nspec:\n  name: t",
         ["4: tenant t: spec.name: belongs in metadata, not in the spec of a Tenant"]),
        (MONITOR_HEAD + "  topicPatern: x", ["6: monitor t/m: spec.topicPatern: unknown field; did you mean topicPattern?"]),
        (MONITOR_HEAD + "  topics: []", ["6: monitor t/m: spec.topics: must have at least 1 item(s)"]),
        (MONITOR_HEAD + "  topics:\n    - a\n    - 7", ["8: monitor t/m: spec.topics[1]: must be a string; quote it"]),
        (MONITOR_HEAD + "  topics: 7", ["6: monitor t/m: spec.topics: must be a list"]),
        (MONITOR_HEAD + "  policy: {lagthreshold: 5}",
         ["6: monitor t/m: spec.policy.lagthreshold: unknown policy key; did you mean lagThreshold?"]),
        (MONITOR_HEAD.replace("cluster: c", "cluster: C"),
         ["4: monitor t/m: spec.cluster: must be 1 to 63 of a-z, 0-9 and -, with no - at either end"]),
        ("kind: Monitor\nmetadata: {name: m, tenant: t}\nspec: {}",
         ["3: monitor t/m: spec.cluster: is required", "3: monitor t/m: spec.consumerGroup: is required"]),
        ("kind: Binding\nmetadata: {tenant: t}", ["1: binding t/default/: spec.namespace: is required"]),
        (CLUSTER + "---\n" + CLUSTER, ["6: cluster t/c: document: duplicate object, already declared at {file}:1"]),
    ],
)  # fmt: skip
def test_faults_name_the_line_the_field_and_the_way_out(tmp_path: Path, text: str, told: list[str]) -> None:
    _, field_errors = manifests(tmp_path, text)
    assert field_errors == [line.replace("{file}", f"{tmp_path}/m.yaml") for line in told]


@pytest.mark.parametrize(
    "secret", ["canary", "[canary]", "{password: [canary]}", "{password: 12345678}", "{canary: {x: 1}}"]
)
def test_a_fault_of_secrets_never_shows_them(tmp_path: Path, secret: str) -> None:
    _, field_errors = manifests(tmp_path, CLUSTER + f"  secrets: {secret}\n")
    assert field_errors
    assert not any(value in field_error.partition(": spec.secrets")[2].partition(": ")[2] for field_error in field_errors
                   for value in ("canary", "12345678"))  # fmt: skip


def test_objects_come_in_the_order_of_need(tmp_path: Path) -> None:
    found, field_errors = manifests(
        tmp_path,
        "kind: Binding\nmetadata: {tenant: t}\nspec: {namespace: n}\n---\n" + MONITOR_HEAD
        + "---\n" + CLUSTER + "---\nkind: Tenant\nmetadata: {name: t}\n",
    )  # fmt: skip
    assert field_errors == []
    assert [str(one.ref) for one in found.manifests] == [
        "tenant t",
        "cluster t/c",
        "monitor t/m",
        "binding t/default/n",
    ]
    assert found.complete


def test_a_comma_list_is_a_list(tmp_path: Path) -> None:
    found, field_errors = manifests(tmp_path, MONITOR_HEAD + "  topics: 'a, b,'\n")
    assert field_errors == []
    assert found.manifests[0].spec["topics"] == ["a", "b"]


def test_references_lead_to_variables_and_files(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text("line\nend\n")
    found, field_errors = manifests(
        tmp_path,
        CLUSTER + "  secrets:\n    password: {valueFrom: {env: PASSWORD}}\n    key: {valueFrom: {file: key.pem}}\n",
        PASSWORD="p",
    )
    assert field_errors == []
    assert found.manifests[0].spec["secrets"] == {"password": "p", "key": "line\nend"}


def test_a_binding_is_named_by_what_its_references_lead_to(tmp_path: Path) -> None:
    text = "kind: Binding\nmetadata: {tenant: t}\nspec: {namespace: {valueFrom: {env: NS}}}\n"
    found, _ = manifests(tmp_path, text, NS="n")
    assert str(found.manifests[0].ref) == "binding t/default/n"
    field_errors: list[FieldError] = []
    refs = read_refs(read_documents([str(tmp_path / "m.yaml")], field_errors), {"NS": "n"}, field_errors)
    assert ([str(ref) for ref in refs], field_errors) == (["binding t/default/n"], [])


def test_what_is_to_be_deleted_needs_no_secret(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(CLUSTER + "  secrets: {password: {valueFrom: {env: NONE}}}\n")
    field_errors: list[FieldError] = []
    assert [str(ref) for ref in read_refs(read_documents([str(file)], field_errors), {}, field_errors)] == [
        "cluster t/c"
    ]
    assert field_errors == []


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("{env: NONE}", "env NONE: is not set or empty; set it in the environment of `lagscale`"),
        ("{env: EMPTY}", "env EMPTY: is not set or empty; set it in the environment of `lagscale`"),
        (
            "{env: LAGSCALE_API_KEY}",
            "env LAGSCALE_API_KEY: is a setting of the command; use a variable with another prefix",
        ),
        (
            "{env: lagscale_api_key}",
            "env lagscale_api_key: is a setting of the command; use a variable with another prefix",
        ),
        ("{file: none}", "file none: not found; paths are relative to the manifest's directory"),
        ("{file: .}", "file .: not found; paths are relative to the manifest's directory"),
        ("{file: empty}", "file empty: must have 1 to 1048576 bytes"),
        ("{file: latin}", "file latin: is not UTF-8"),
        ("{secretKeyRef: x}", "expected {env: NAME} or {file: PATH}"),
        ("{env: A, file: b}", "expected {env: NAME} or {file: PATH}"),
        ("text", "expected {env: NAME} or {file: PATH}"),
    ],
)
def test_a_reference_that_leads_nowhere_names_the_field(tmp_path: Path, reference: str, told: str) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "latin").write_bytes(b"\xe9")
    environ = {"EMPTY": "", "LAGSCALE_API_KEY": "canary", "lagscale_api_key": "canary"}
    _, field_errors = manifests(
        tmp_path, CLUSTER + f"  secrets:\n    password:\n      valueFrom: {reference}\n", **environ
    )
    assert field_errors == [f"7: spec.secrets.password.valueFrom: {told}"]


def test_what_is_beside_a_reference_is_a_fault(tmp_path: Path) -> None:
    _, field_errors = manifests(tmp_path, CLUSTER + "  secrets: {password: {valueFrom: {env: A}, else: b}}\n", A="a")
    assert field_errors == ["5: spec.secrets.password.valueFrom: expected {env: NAME} or {file: PATH}"]


def test_equal_specs_have_one_normal_form() -> None:
    one = {"cluster": "c", "consumerGroup": " g ", "topics": ["a", "b", "a"], "overridable": False, "excludeTopics": [],
           "policy": {"lagThreshold": 5, "targetLag": 1e-7, "allowIdleConsumers": True, "holdSeconds": None}}  # fmt: skip
    other = {"cluster": "c", "consumerGroup": "g", "topics": ["a", "b"], "topicPattern": None,
             "policy": {"allowIdleConsumers": "true", "lagThreshold": " 5 ", "targetLag": "0.0000001"}}  # fmt: skip
    assert SCHEMAS.normalize_spec(MONITOR, one) == SCHEMAS.normalize_spec(MONITOR, other)
    assert SCHEMAS.normalize_spec(MONITOR, one) != SCHEMAS.normalize_spec(MONITOR, other | {"topics": ["b", "a"]})


def test_every_kind_can_be_tried_and_only_secrets_are_never_shown() -> None:
    assert all(SCHEMAS.supports_dry_run(kind) for kind in KINDS)
    assert {kind.name: SCHEMAS.write_only_fields(kind) for kind in KINDS if SCHEMAS.write_only_fields(kind)} == {
        "Cluster": {"secrets"}
    }


def test_the_manifests_of_the_readme_are_valid(tmp_path: Path) -> None:
    readme = (Path(__file__).parents[4] / "README.md").read_text(encoding="utf-8")
    (block,) = (one for one in re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL) if "kind: Monitor" in one)
    found, faults = manifests(tmp_path, block)
    assert faults == []
    assert [str(one.ref) for one in found.manifests] == [
        "tenant shop", "cluster shop/main", "monitor shop/ingest-logs", "binding shop/default/pipelines",
    ]  # fmt: skip
