"""The comparison with KEDA's `kafka` trigger over the API, from rows as the scraper writes them."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from lagscale.store.registry.api_keys import TENANT_VIEWER
from tests.integration.api.conftest import Shop
from tests.support.stored_rounds import write

pytestmark = pytest.mark.integration

POLICY = {
    "lagThreshold": 100, "persistenceScope": "total", "sustainSeconds": 60, "activationSustainSeconds": 0,
    "samplingInterval": 10, "holdSeconds": 0,
}  # fmt: skip
#: Every 10 s over 15 minutes, the oldest first: a spike of one sample, and lag that lasts for five minutes.
SPIKE = {75}
LASTING = set(range(30, 60))


def rounds() -> list[tuple[float, list[int | None]]]:
    """(seconds ago, lags of two partitions)."""
    taken: list[tuple[float, list[int | None]]] = []
    for number in range(90, 0, -1):
        lag = 350 if number in SPIKE | LASTING else 4
        taken.append((number * 10 - 5, [lag, 0]))
    return taken


async def compared(shop: Shop, **query: Any) -> httpx.Response:
    return await shop.api.get(f"{shop.path}/monitors/orders/compare", params={"hours": 0.24, "step": 10, **query})


async def test_a_spike_moves_keda_and_not_lagscale_and_lasting_lag_moves_both(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", policy=POLICY)
    write(shared_url, shop.name, "orders", rounds(), members=1)
    answer = await compared(shop, minReplicas=1, maxReplicas=10)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["trigger"]["lagThreshold"] == 100
    assert (found["minReplicas"], found["maxReplicas"], found["stepSeconds"]) == (1, 10, 10.0)
    # The cap of two partitions rounds down: 350 is more than 2 x 100, so KEDA tells 200.
    peaks = [one for one in found["points"] if one["keda"]["value"] == 200]
    assert len(peaks) == pytest.approx(len(SPIKE | LASTING), abs=1)
    assert [one["verdict"] for one in peaks if one["lagscale"]["value"] == 200] == ["sustained"] * (len(LASTING) - 6)
    assert found["keda"]["peakReplicas"] == found["lagscale"]["peakReplicas"] == 2
    spike = found["differences"][0]
    assert (spike["kedaPeakReplicas"], spike["lagscalePeakReplicas"]) == (2, 1)
    assert "there was lag, but not for sustainSeconds" in spike["sentence"]
    assert found["keda"]["errors"] == 0
    assert found["sentence"].startswith("KEDA's kafka trigger would have scaled ")


async def test_both_follow_the_same_samples_where_nothing_has_to_last(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", policy={**POLICY, "lagThreshold": 3, "sustainSeconds": 0})
    write(shared_url, shop.name, "orders", rounds(), members=1)
    found = (await compared(shop, minReplicas=1)).json()
    assert found["differences"] == []
    assert found["keda"]["scaleEvents"] == found["lagscale"]["scaleEvents"]


async def test_kedas_keys_can_be_those_of_the_old_trigger(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", policy=POLICY)
    write(shared_url, shop.name, "orders", rounds(), members=1)
    found = (await compared(shop, lagThreshold=1, allowIdleConsumers="true", excludePersistentLag="true")).json()
    assert found["trigger"]["lagThreshold"] == 1
    assert found["trigger"]["allowIdleConsumers"] is True
    assert any("excludePersistentLag" in note for note in found["notes"])
    # The first call knows no commit to compare with; every position stands still afterwards.
    assert max(one["keda"]["value"] for one in found["points"][2:]) <= 350


async def test_without_samples_nobody_has_an_answer_and_nothing_is_zero(shop: Shop) -> None:
    await shop.monitor("orders", policy=POLICY)
    found = (await compared(shop)).json()
    moments = found["points"]
    assert moments
    assert {(one["keda"]["value"], one["lagscale"]["value"], one["verdict"]) for one in moments} == {
        (None, None, "unknown")
    }
    assert found["keda"]["errors"] == found["lagscale"]["errors"] == len(moments)


async def test_held_answers_are_told(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", policy={**POLICY, "holdSeconds": 3600})
    # Lag lasts, and then nothing is measured for five minutes.
    write(shared_url, shop.name, "orders", [(number * 10.0, [350, 0]) for number in range(80, 30, -1)], members=1)
    found = (await compared(shop, minReplicas=1)).json()
    held = [one for one in found["points"] if one["lastKnown"]]
    assert held
    assert {(one["lagscale"]["value"], one["lagscale"]["active"]) for one in held} == {(200, True)}
    assert all(one["keda"]["value"] is None for one in held[5:])


async def test_stabilized_answers_are_told_as_keda_gets_them(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", policy={**POLICY, "scaleDownStabilization": 60})
    write(shared_url, shop.name, "orders", rounds(), members=1)
    found = (await compared(shop, minReplicas=1)).json()
    values = [(one["keda"]["value"], one["lagscale"]["value"]) for one in found["points"]]
    last = max(number for number, (theirs, _) in enumerate(values) if theirs == 200)
    assert [ours for _, ours in values[last + 1 : last + 7]] == [200] * 6
    assert values[last + 7][1] == 0


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"from": "tomorrow"}, "from"),
        ({"to": "4000-01-01T00:00:00Z"}, "to"),
        ({"step": 1}, "step"),
        ({"step": 80_000}, "step"),
        ({"hours": 100, "step": 10}, "step"),
        ({"lagThreshold": 0}, "lagThreshold"),
        ({"minReplicas": 5, "maxReplicas": 2}, "maxReplicas"),
        ({"lagTreshold": 5}, "lagTreshold"),
    ],
)
async def test_faults_name_their_field(query: dict[str, Any], field: str, shop: Shop) -> None:
    await shop.monitor("orders", policy=POLICY)
    answer = await compared(shop, **query)
    assert answer.status_code == 422, answer.text
    assert any(field in fault["field"] for fault in answer.json()["errors"]), answer.text


async def test_a_foreign_monitor_is_a_missing_one(shop: Shop, other: Shop) -> None:
    await other.monitor("orders", policy=POLICY)
    headers = await shop.key(TENANT_VIEWER)
    foreign = await shop.api.get(f"{other.path}/monitors/orders/compare", headers=headers)
    missing = await shop.api.get("/v1/tenants/nobody/monitors/orders/compare", headers=headers)
    assert (foreign.status_code, foreign.content) == (missing.status_code, missing.content)
    assert foreign.status_code == 404
