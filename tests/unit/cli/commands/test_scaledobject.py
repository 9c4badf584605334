"""`lagscale scaledobject`: valid for KEDA, refers to the monitor, with defaults from the API."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import yaml

from services.cli.client import ApiClient
from services.cli.settings import CliSettings
from services.scaler.triggers.metadata import TriggerReader
from tests.conventions.keda_schemas import validate
from tests.support.command_line import run_main

VERDICT: dict[str, Any] = {"partitions": 12, "policy": {"consumersPerReplica": 5, "holdSeconds": 3600.0}}
BINDINGS: dict[str, Any] = {"items": [{"instance": "default", "namespace": "shop-production"}], "next": None}


def run(
    monkeypatch: pytest.MonkeyPatch,
    *arguments: str,
    verdict: dict[str, Any] = VERDICT,
    bindings: dict[str, Any] = BINDINGS,
) -> int:
    answers = {
        "/v1/tenants/shop/monitors/orders/verdict": verdict,
        "/v1/tenants/shop/bindings": bindings,
    }

    def client(settings: CliSettings, **_: object) -> ApiClient:
        return ApiClient(settings, httpx.MockTransport(lambda asked: httpx.Response(200, json=answers[asked.url.path])))

    monkeypatch.setattr("services.cli.client.ApiClient", client)
    return run_main(monkeypatch, "scaledobject", *arguments)


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(capsys.readouterr().out)
    validate(found)
    for trigger in found["spec"]["triggers"]:
        assert TriggerReader(tick_seconds=5).read(trigger["metadata"]).services == ("orders",)
    return found


def test_one_ready_to_apply(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "shop/orders") == 0
    found = printed(capsys)
    assert found["metadata"] == {"name": "orders", "namespace": "shop-production"}
    assert found["spec"] == {
        "scaleTargetRef": {"name": "orders"},
        "minReplicaCount": 1,
        "maxReplicaCount": 3,
        "triggers": [
            {
                "type": "external",
                "metricType": "AverageValue",
                "metadata": {"scalerAddress": "lagscale-scaler.lagscale.svc:50051", "serviceType": "orders"},
            }
        ],
    }


def test_every_option_has_its_place(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    options = (
        "--name", "consumer", "--namespace", "eu", "--target", "statefulset/eater", "--min", "2", "--max", "9", "--push",
        "--mtls-auth", "ClusterTriggerAuthentication/keda-client", "--scaler-address", "scaler.eu:50051",
    )  # fmt: skip
    assert run(monkeypatch, "shop/orders", *options) == 0
    found = printed(capsys)
    assert found["metadata"] == {"name": "consumer", "namespace": "eu"}
    spec = found["spec"]
    assert spec["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "eater"}
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (2, 9)
    (trigger,) = spec["triggers"]
    assert trigger["type"] == "external-push"
    assert trigger["metadata"]["scalerAddress"] == "scaler.eu:50051"
    assert trigger["authenticationRef"] == {"name": "keda-client", "kind": "ClusterTriggerAuthentication"}


def test_a_minimum_of_zero_without_held_answers_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = {"partitions": 3, "policy": {"consumersPerReplica": 1, "holdSeconds": 0.0}}
    assert run(monkeypatch, "shop/orders", "--min", "0", verdict=verdict) == 0
    assert "# holdSeconds is 0: without a last-known answer" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "field", "answers"),
    [
        (("orders",), "TENANT/MONITOR", {}),
        (("shop/orders", "--target", "pod/x"), "--target", {}),
        (("shop/orders", "--min", "5"), "--min", {}),
        (("shop/orders", "--name", "Not_Good"), "--name", {}),
        (("shop/orders",), "--max", {"verdict": VERDICT | {"partitions": 0}}),
        (("shop/orders",), "--namespace", {"bindings": {"items": [], "next": None}}),
        (("shop/orders",), "--namespace", {"bindings": {"items": [{"namespace": "*"}], "next": None}}),
        (
            ("shop/orders",),
            "--namespace",
            {"bindings": {"items": [{"namespace": "a"}, {"namespace": "b"}], "next": None}},
        ),
    ],
)
def test_what_is_not_known_or_wrong_names_its_option(
    arguments: tuple[str, ...],
    field: str,
    answers: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, *arguments, **answers) == 2
    assert f"lagscale: {field}: " in capsys.readouterr().err
