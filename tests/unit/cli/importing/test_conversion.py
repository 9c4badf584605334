"""Every manifest of tests/data/keda-imports: the result of its import, and that all of it is valid."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ruamel.yaml import YAML
from ruamel.yaml.tokens import CommentToken

from devstack.certificates import Authority
from lagscale.domain.policy.keda_keys import KEDA_KEYS
from lagscale.domain.policy.keys import KEYS_BY_NAME
from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.tenancy import is_name
from services.api.bindings.routes import BindingIn
from services.api.clusters.schemas import ClusterIn
from services.api.clusters.security import build_cluster_spec
from services.api.monitors.schemas import MonitorIn
from services.scaler.triggers.metadata import TriggerReader
from tests.conventions.keda_schemas import validate
from tests.unit.cli.importing.manifests_fixture import PATHS, expectation, expected, imported

LISTED = Path(__file__).parents[3] / "data" / "keda" / "kafka-trigger-keys.txt"
CANARY = re.compile(r"canary|Y2FuYXJ5")
#: Manifest -> its monitors, by TENANT/NAME, and the number of objects and documents that are not converted.
MONITORS: dict[str, tuple[list[str], int]] = {
    "01-plain": (["shop/orders"], 0),
    "02-minimal": (["default/minimal"], 0),
    "03-from-env": (["logs/ingest"], 0),
    "04-from-env-unknown": (["mail/mailer"], 0),
    "05-several-kafka-triggers": (["finance/billing-invoices", "finance/billing-refunds"], 0),
    "06-kafka-cpu-cron": (["shop/checkout"], 0),
    "07-fallback": (["metrics/rollup"], 0),
    "08-fallback-zero": (["staging/preview"], 0),
    "09-hpa-behavior": (["search/indexer"], 0),
    "10-scaled-job": (["media/transcode"], 0),
    "11-paused": (["storage/archive"], 0),
    "12-idle-replicas": (["finance/reports"], 0),
    "13-helm-leftovers": (["shop/release-name-orders"], 0),
    "14-unrendered-template": (["shop/fine"], 2),
    "15-anchors": (["shop/anchored-first", "shop/anchored-second"], 0),
    "16-list": (["shop/orders"], 0),
    "17-quoted-numbers": (["shop/numbers"], 0),
    "18-broken-yaml": (["shop/whole"], 4),
    "19-sasl-plaintext": (["shop/secured"], 0),
    "20-scram": (["pay/chargebacks", "pay/payments"], 0),
    "21-mutual-tls": (["iot/telemetry"], 0),
    "22-partition-limitation": (["shop/all-partitions", "shop/low-partitions"], 1),
    "23-exclude-persistent-lag": (["shop/poison"], 0),
    "24-invalid-offset": (["shop/fresh-group"], 0),
    "25-msk-pod-identity": (["aws/msk-consumer"], 0),
    "26-msk-keys": (["aws/msk-keys"], 0),
    "27-oauthbearer": (["shop/oauth-app"], 0),
    "28-gssapi": (["bank/ledger"], 0),
    "29-authentication-missing": (["shop/orphan"], 1),
    "30-same-names": (["blue/worker", "green/green-worker", "green/worker-job"], 0),
    "31-same-group-twice": (["shop/again", "shop/twice-twice-0", "shop/twice-twice-1"], 0),
    "32-scaling-modifiers": (["shop/formula"], 0),
    "33-conflicts": (["shop/even-and-idle"], 2),
    "34-refused-by-keda": ([], 3),
    "35-metric-types": (["shop/by-value-by-value", "shop/by-value-utilised"], 0),
    "36-open-secret": (["shop/open"], 0),
    "37-scaled-object": (["shop/jsonnet"], 0),
    "38-env-authentication": (["shop/by-env"], 0),
    "39-msk-role": (["aws/daily", "aws/nightly"], 0),
}
each = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def loaded(text: str) -> list[dict[str, Any]]:
    return [item for item in yaml.safe_load_all(text) if item is not None]


#: What stands in variables, by the field that refers to them.
VARIABLES = {
    **dict.fromkeys(("ca", "cert"), Authority.make().certificate),
    "key": "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----",
    "tls": "enable",
    "awsRegion": "eu-west-1",
    "oauthTokenEndpointUri": "https://login.example/token",
    **dict.fromkeys(("username", "realm", "kerberosServiceName"), "known"),
}


def known(value: Any, field: str = "") -> Any:
    """A spec with every reference set, as it is once the variables are there."""
    if isinstance(value, dict):
        if set(value) == {"valueFrom"}:
            assert set(value["valueFrom"]) == {"env"}
            assert re.fullmatch(r"KAFKA_[A-Z0-9_]+", value["valueFrom"]["env"])
            return VARIABLES.get(field, "known:9092")
        return {name: known(item, name) for name, item in value.items()}
    return [known(item) for item in value] if isinstance(value, list) else value


def comments(text: str) -> set[str]:
    """Every comment of a YAML text, without the hash."""
    found: set[str] = set()

    def walk(token: Any) -> None:
        if isinstance(token, CommentToken):
            found.update(line.strip().lstrip("#").strip() for line in token.value.split("\n"))
        elif isinstance(token, list):
            for one in token:
                walk(one)

    def visit(node: Any) -> None:
        if hasattr(node, "ca"):
            walk(node.ca.comment)
            for places in node.ca.items.values():
                walk(places)
        for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            visit(child)

    visit(YAML(typ="rt").load(io.StringIO(text)))
    return {comment for comment in found if comment}


def test_there_are_enough_manifests_and_each_is_expected() -> None:
    assert len(PATHS) >= 30
    assert {path.stem for path in PATHS} == set(MONITORS)


@each
def test_what_comes_out_is_what_was_read_with_care(path: Path) -> None:
    # To renew, and then read every difference: .venv/bin/python -m tests.unit.cli.importing.manifests_fixture
    assert expectation(path) == expected(path).read_text(encoding="utf-8")


@each
def test_these_monitors_come_out(path: Path) -> None:
    texts, report = imported(path)
    names, left = MONITORS[path.stem]
    registered = loaded(texts.get("register/20-monitors.yaml", ""))
    assert sorted(f"{one['metadata']['tenant']}/{one['metadata']['name']}" for one in registered) == names
    assert report["summary"]["notConverted"] + report["summary"]["unreadable"] == left
    told = [f"{one['tenant']}/{monitor['name']}" for one in report["objects"] for monitor in one["monitors"]]
    assert sorted(told) == names


@each
def test_everything_for_keda_is_valid_and_asks_for_what_is_registered(path: Path) -> None:
    texts, report = imported(path)
    registered = {
        (one["metadata"]["tenant"], one["metadata"]["name"])
        for one in loaded(texts.get("register/20-monitors.yaml", ""))
    }
    asked = set()
    for one in report["objects"]:
        if not one["converted"]:
            continue
        name = f"{one['namespace']}_{one['kind']}_{one['name']}.yaml".lower()
        (new,) = loaded(texts[f"{one['batch']}/new/{name}"])
        validate(new)
        assert (new["kind"], new["metadata"]["name"]) == (one["kind"], one["name"])
        for trigger in new["spec"]["triggers"]:
            if trigger["type"] == "external":
                assert TriggerReader(tick_seconds=5).read(trigger["metadata"]).services
                asked.add((one["tenant"], trigger["metadata"]["serviceType"]))
            assert trigger["type"] not in {"kafka", "apache-kafka"}
    assert asked == registered


@each
def test_the_way_back_is_valid_and_the_same_in_everything_else(path: Path) -> None:
    texts, _ = imported(path)
    for name, text in texts.items():
        if "/rollback/" not in name:
            continue
        (old,), (new,) = loaded(text), loaded(texts[name.replace("rollback", "new")])
        if path.stem != "17-quoted-numbers":  # Kubernetes refuses that one as it is.
            metric_types = [trigger.pop("metricType", None) for trigger in old["spec"]["triggers"]]
            if "Utilization" in metric_types:
                for trigger in new["spec"]["triggers"]:
                    trigger.pop("metricType", None)
            else:
                for trigger, kind in zip(old["spec"]["triggers"], metric_types, strict=True):
                    trigger.update({} if kind is None else {"metricType": kind})
            validate(old)
        for trigger, replaced in zip(old["spec"]["triggers"], new["spec"]["triggers"], strict=True):
            if trigger["type"] in {"kafka", "apache-kafka"}:
                for key in ("type", "metadata", "authenticationRef"):
                    trigger.pop(key, None)
                    replaced.pop(key, None)
        assert new == old


@each
def test_no_comment_is_lost(path: Path) -> None:
    texts, _ = imported(path)
    for name, text in texts.items():
        if "/new/" in name:
            kept = " ".join(comments(text))
            assert [one for one in comments(texts[name.replace("new", "rollback")]) if one not in kept] == []


@each
def test_the_api_takes_what_is_registered(path: Path) -> None:
    texts, _ = imported(path)
    clusters = set()
    for one in loaded(texts.get("register/10-clusters.yaml", "")):
        assert is_name(one["metadata"]["name"])
        build_cluster_spec("main", ClusterIn.model_validate(known(one["spec"])), platform=True)
        clusters.add((one["metadata"]["tenant"], one["metadata"]["name"]))
    for one in loaded(texts.get("register/20-monitors.yaml", "")):
        spec = known(one["spec"])
        topics = spec.get("topics")
        MonitorIn.model_validate(spec | ({} if topics != "known:9092" else {"topics": "known"}))
        assert (one["metadata"]["tenant"], spec["cluster"]) in clusters
        given = {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in spec["policy"].items()
        }
        assert set(given) <= set(KEYS_BY_NAME)
        policy = parse_policy(given)
        assert (policy.persistence_scope.value, policy.activation_sustain_ms) == ("total", 0)
    for one in loaded(texts.get("register/30-bindings.yaml", "")):
        BindingIn.model_validate(one["spec"])


@each
def test_kedas_defaults_are_written_out_in_full(path: Path) -> None:
    texts, _ = imported(path)
    for one in loaded(texts.get("register/20-monitors.yaml", "")):
        defaulted = {name for name, key in KEDA_KEYS.items() if key.target.value == "policy" and key.default}
        assert defaulted - {"excludePersistentLag"} <= set(one["spec"]["policy"])


@each
def test_no_secret_is_written_anywhere(path: Path) -> None:
    texts, report = imported(path)
    assert [name for name, text in texts.items() if CANARY.search(text)] == []
    assert not CANARY.search(json.dumps(report))


@each
def test_every_key_of_every_trigger_is_in_the_report(path: Path) -> None:
    texts, report = imported(path)
    for one in report["objects"]:
        if not one["converted"]:
            continue
        name = f"{one['namespace']}_{one['kind']}_{one['name']}.yaml".lower()
        (old,) = loaded(texts[f"{one['batch']}/rollback/{name}"])
        told = {key["key"] for key in one["keys"]}
        wanted = {f"metadata.{key}" for key in old["metadata"] if key != "annotations"}
        wanted |= {key for key in old["spec"] if key not in {"triggers", "advanced"}}
        for place, trigger in enumerate(old["spec"]["triggers"]):
            if trigger["type"] not in {"kafka", "apache-kafka"}:
                wanted.add(f"triggers[{place}]")
                continue
            wanted |= {f"triggers[{place}].{key}" for key in trigger if key != "metadata"}
            wanted |= {f"triggers[{place}].metadata.{key}" for key in trigger["metadata"]}
        assert wanted - told == set()
        assert len(told) == len(one["keys"]), "a key is told of twice"


def test_all_keys_of_kedas_trigger_occur_and_are_told_of() -> None:
    listed = {line.split()[0] for line in LISTED.read_text(encoding="utf-8").splitlines() if not line.startswith("#")}
    assert set(KEDA_KEYS) == listed
    texts, report = imported(*PATHS)
    assert {key["key"] for key in report["kedaKeys"]} == listed
    for name in listed:
        assert f"| `{name}` |" in texts["report.md"]
    assert [key["key"] for key in report["kedaKeys"] if not key["occurrences"]] == []


def test_defaults_are_kedas() -> None:
    listed = [line.split() for line in LISTED.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    defaults = {name: " ".join(default) for name, *default in listed}
    assert {name: key.default for name, key in KEDA_KEYS.items()} == defaults | {"partitionLimitation": ""}
