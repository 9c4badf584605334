"""`lagscale compare`: selection of monitors, keys of the request, and output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.cli.client import ApiClient
from services.cli.settings import CliSettings
from tests.support.command_line import run_main

SIDE = {"value": 10.0, "active": True, "replicas": 2}
ANSWER: dict[str, Any] = {
    "monitor": "orders", "begin": "2030-01-01T00:00:00Z", "end": "2030-01-01T00:02:00Z", "stepSeconds": 60.0,
    "minReplicas": 0, "maxReplicas": 8, "targetLag": 10.0, "trigger": {},
    "sentence": "KEDA's kafka trigger would have scaled 4 times and Lagscale once.",
    "keda": {"scaleEvents": 4, "peakReplicas": 7, "averageReplicas": 2.25, "errors": 0},
    "lagscale": {"scaleEvents": 1, "peakReplicas": 2, "averageReplicas": 1.5, "errors": 3},
    "differences": [
        {"begin": "2030-01-01T00:01:00Z", "end": "2030-01-01T00:02:00Z", "kedaPeakReplicas": 7, "lagscalePeakReplicas": 2,
         "sentence": "KEDA has more replicas: lag was there, and had not lasted for sustainSeconds."},
    ],
    "notes": ["[b]What it cannot show."],
    "points": [
        {"at": "2030-01-01T00:01:00Z", "keda": SIDE | {"replicas": 7}, "lagscale": SIDE, "verdict": "calm",
         "reason": "not_yet", "lastKnown": False, "differs": True},
        {"at": "2030-01-01T00:02:00Z", "keda": SIDE, "lagscale": SIDE, "verdict": "calm", "reason": "not_yet",
         "lastKnown": False, "differs": False},
    ],
}  # fmt: skip
MISSING = {"type": "urn:lagscale:problem:not-found", "detail": "Object not found."}


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


class Api:
    """Answers, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        self.asked.append((path, dict(request.url.params)))
        if path == "/v1/tenants":
            return httpx.Response(200, json={"items": [{"name": "shop"}, {"name": "pay"}], "next": None})
        if path.endswith("/monitors"):
            first = "cursor" not in request.url.params
            item = {"name": "orders" if first else "gone"}
            return httpx.Response(200, json={"items": [item], "next": "2" if first else None})
        if "/gone/" in path:
            return httpx.Response(404, json=MISSING)
        return httpx.Response(200, json=ANSWER)

    @property
    def compared(self) -> list[str]:
        return [path for path, _ in self.asked if path.endswith("/compare")]


def run(monkeypatch: pytest.MonkeyPatch, api: Api, *arguments: str) -> int:
    def client(settings: CliSettings, timeout: float) -> ApiClient:
        assert timeout > 100
        return ApiClient(settings, httpx.MockTransport(api))

    monkeypatch.setattr("services.cli.client.ApiClient", client)
    return run_main(monkeypatch, "compare", *arguments)


def test_one_monitor_is_shown_with_plots_and_where_they_differ(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    api = Api()
    assert run(monkeypatch, api, "shop/orders", "--hours", "3", "--keda", "lagThreshold=10", "--max", "8") == 0
    ((path, query),) = api.asked
    assert path == "/v1/tenants/shop/monitors/orders/compare"
    assert query == {"hours": "3", "lagThreshold": "10", "maxReplicas": "8"}
    shown = capsys.readouterr().out
    assert "would have scaled 4 times and Lagscale once" in shown
    assert "00:01:00 to 00:02:00: 7 vs. 2. KEDA has more replicas" in shown
    assert "[b]What it cannot show." in shown
    # Both plots have one scale: the greatest of both.
    assert [line.split("┤")[0].strip() for line in shown.splitlines() if "┤" in line] == ["7", "0", "7", "0"]


def test_a_tenants_monitors_are_a_table_and_one_that_fails_stops_no_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    api = Api()
    assert run(monkeypatch, api, "shop") == 1
    assert api.compared == ["/v1/tenants/shop/monitors/orders/compare", "/v1/tenants/shop/monitors/gone/compare"]
    shown, error = capsys.readouterr()
    assert "4 / 1" in shown
    assert "2.25 / 1.5" in shown
    assert "shop/gone: Object not found" in shown
    assert error == "lagscale: 1 of 2 monitors could not be compared.\n"


def test_without_an_argument_all_tenants_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    api = Api()
    assert run(monkeypatch, api) == 1
    assert [path.split("/")[3] for path in api.compared] == ["shop", "shop", "pay", "pay"]


def test_an_import_gives_kedas_own_keys_and_replicas(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monitor = {
        "name": "orders",
        "minReplicas": 2,
        "maxReplicas": 9,
        "keda": {"lagThreshold": 5, "allowIdleConsumers": True},
    }
    report = {"objects": [{"tenant": "shop", "monitors": [monitor]}, {"tenant": "pay", "monitors": []}]}
    (tmp_path / "report.json").write_text(json.dumps(report))
    api = Api()
    assert run(monkeypatch, api, "--imported", str(tmp_path), "--json") == 0
    ((_, query),) = api.asked
    assert query == {
        "hours": "6", "lagThreshold": "5", "allowIdleConsumers": "true", "minReplicas": "2", "maxReplicas": "9",
    }  # fmt: skip
    assert json.loads(capsys.readouterr().out) == [{"tenant": "shop", **ANSWER}]
    assert run(monkeypatch, api, "pay", "--imported", str(tmp_path)) == 2


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("No/Name",), "TENANT/MONITOR"),
        (("shop/orders", "--keda", "lagThreshold"), "--keda"),
        (("--imported", "nowhere"), "--imported"),
    ],
)
def test_faults_name_the_option(
    arguments: tuple[str, ...], field: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, Api(), *arguments) == 2
    assert f"lagscale: {field}: " in capsys.readouterr().err
