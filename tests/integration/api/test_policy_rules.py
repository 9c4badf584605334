"""A tenant's defaults and limits over REST: what is in force, what is refused, and what a change of them does."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from lagscale.domain.policy.keys import KEYS_BY_NAME
from tests.integration.api.conftest import Shop
from tests.integration.api.test_registry import fields, rows
from tests.unit.domain.policy.test_tenant_rules import OTHERS

pytestmark = pytest.mark.integration


async def rule(shop: Shop, defaults: dict[str, Any] | None = None, limits: dict[str, Any] | None = None) -> Any:
    body = {"policyDefaults": defaults or {}, "policyLimits": limits or {}}
    answer = await shop.api.put(shop.path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def shown(shop: Shop, name: str) -> dict[str, Any]:
    body: dict[str, Any] = (await shop.api.get(f"{shop.path}/monitors/{name}")).json()
    return body


async def in_force(shop: Shop, name: str) -> dict[str, Any]:
    return dict((await shop.api.get(f"{shop.path}/monitors/{name}/verdict")).json()["policy"])


async def test_rules_are_shown_as_they_were_given_and_put_again_change_nothing(shop: Shop) -> None:
    body = {
        "policyDefaults": {"sustainSeconds": 300, "targetLag": 0.5, "allowIdleConsumers": True, "holdSeconds": None},
        "policyLimits": {"sustainSeconds": {"min": 60}, "metric": {"allowed": ["lag"]}, "drainSeconds": {"fixed": 0}},
    }
    made = await shop.api.put(shop.path, json=body)
    assert made.json()["policyDefaults"] == {"sustainSeconds": "300", "targetLag": "0.5", "allowIdleConsumers": "true"}
    limits = {
        name: {rule: value for rule, value in limit.items() if value is not None}
        for name, limit in made.json()["policyLimits"].items()
    }
    assert limits == {"sustainSeconds": {"min": "60"}, "metric": {"allowed": ["lag"]}, "drainSeconds": {"fixed": "0"}}
    again = await shop.api.put(shop.path, json=body)
    assert (again.json(), again.headers["etag"]) == (made.json(), made.headers["etag"])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"policyDefaults": {"sustainSecond": 3}}, "policyDefaults.sustainSecond"),
        ({"policyDefaults": {"sustainSeconds": "soon"}}, "policyDefaults.sustainSeconds"),
        ({"policyDefaults": {"sustainSeconds": [3]}}, "policyDefaults.sustainSeconds"),
        ({"policyDefaults": {"sustainSeconds": "\u0000"}}, "policyDefaults.sustainSeconds"),
        ({"policyLimits": {"sustainSeconds": {"least": 3}}}, "policyLimits.sustainSeconds.least"),
        ({"policyLimits": {"sustainSeconds": {"min": "x"}}}, "policyLimits.sustainSeconds.min"),
        ({"policyLimits": {"sustainSeconds": {"min": [1]}}}, "policyLimits.sustainSeconds.min"),
        ({"policyLimits": {"lagTreshold": {"min": 1}}}, "policyLimits.lagTreshold"),
        ({"autoExpiryDays": 0}, "autoExpiryDays"),
        ({"maxAutoMonitors": -1}, "maxAutoMonitors"),
    ],
)
async def test_a_fault_of_the_rules_names_its_field(shop: Shop, body: dict[str, Any], field: str) -> None:
    assert fields(await shop.api.put(shop.path, json=body)) == {field}


@pytest.mark.parametrize("name", sorted(KEYS_BY_NAME))
async def test_a_limit_of_every_key_counts_for_one_monitor_and_for_many(shop: Shop, name: str) -> None:
    value, beside = OTHERS[name]
    key = KEYS_BY_NAME[name]
    allowed = "false" if value == "true" else key.choices[0] if key.choices else "7"
    await rule(shop, limits={name: {"allowed": [allowed]}})
    policy = {name: value, **beside}
    alone = await shop.monitor("one", policy=policy)
    assert fields(alone) == {f"policy.{name}"}
    assert "platform administrator" in alone.json()["detail"]
    body = {"name": "one", "cluster": "main", "consumerGroup": "g", "topics": ["t"], "policy": policy}
    many = await shop.api.post(f"{shop.path}/monitors/bulk", json={"items": [{"put": body}]})
    assert fields(many) == {f"items.0.put.policy.{name}"}


async def test_defaults_are_in_force_at_once_and_each_moment_keeps_its_own(shop: Shop, shared_url: str) -> None:
    await rule(shop, {"sustainSeconds": 60})
    await shop.monitor("follows", policy={"lagThreshold": 5})
    await shop.monitor("own", policy={"sustainSeconds": 90})
    before = await shown(shop, "follows")
    assert (before["policy"], before["inheritedPolicy"]) == ({"lagThreshold": "5"}, {"sustainSeconds": "60"})
    assert (await in_force(shop, "follows"))["sustainSeconds"] == 60

    await rule(shop, {"sustainSeconds": 30, "isolationLevel": "read_committed", "samplingInterval": 20})
    after = await shown(shop, "follows")
    assert (after["policy"], after["version"]) == ({"lagThreshold": "5"}, before["version"] + 1)
    now = await in_force(shop, "follows")
    assert (now["sustainSeconds"], now["isolationLevel"], now["samplingInterval"]) == (30, "read_committed", 20)
    assert (await in_force(shop, "own"))["sustainSeconds"] == 90
    versions = rows(
        shared_url,
        "select v.policy from monitor_version v join monitor m on m.id = v.monitor_id join tenant t "
        "on t.id = m.tenant_id where t.name = %s and m.name = 'follows' order by v.version",
        shop.name,
    )
    assert [row["policy"]["sustainSeconds"] for row in versions] == ["60", "30"]
    [scraped] = rows(
        shared_url,
        "select m.sampling_ms, array_agg(l.isolation_level) as levels from monitor m join tenant t on "
        "t.id = m.tenant_id join monitor_target x on x.monitor_id = m.id join lag_target l on l.id = x.target_id "
        "where t.name = %s and m.name = 'follows' group by m.id",
        shop.name,
    )
    assert scraped == {"sampling_ms": 20000, "levels": ["read_committed"]}
    # What KEDA was told before is explained by the policy of then.
    told = (await shop.api.get(f"{shop.path}/monitors/follows/explain", params={"at": before["updatedAt"]})).json()
    assert "60" in str(told["registration"]["policy"]["sustainSeconds"]), told["registration"]

    await rule(shop)
    assert (await in_force(shop, "follows"))["sustainSeconds"] == 120
    assert (await shown(shop, "follows"))["inheritedPolicy"] == {}


async def test_a_monitor_that_new_rules_forbid_is_listed_and_goes_on(shop: Shop) -> None:
    await shop.monitor("small", policy={"lagThreshold": 5})
    await shop.monitor("large", policy={"lagThreshold": 500})
    await shop.monitor("idle", policy={"allowIdleConsumers": True})
    before = await shown(shop, "small")
    answer = await rule(shop, {"limitToPartitionsWithLag": True}, {"lagThreshold": {"min": 100}})
    wrong = [(warning["monitor"], warning["field"]) for warning in answer["warnings"]]
    assert wrong == [("idle", "policy.limitToPartitionsWithLag"), ("small", "policy.lagThreshold")]
    assert (await in_force(shop, "small"))["lagThreshold"] == 5
    assert (await in_force(shop, "idle"))["allowIdleConsumers"] is True
    listed = (await shop.api.get(f"{shop.path}/policy-warnings")).json()
    assert listed == {"items": answer["warnings"], "next": None}
    small = await shop.monitor("small", policy={"lagThreshold": 5})
    assert (small.status_code, small.json()["version"]) == (200, before["version"] + 1)
    assert fields(await shop.monitor("small", policy={"lagThreshold": 6})) == {"policy.lagThreshold"}
    assert (await shop.monitor("idle", policy={"allowIdleConsumers": True})).json()["version"] == 1
    assert (await shop.monitor("small", policy={"lagThreshold": 100})).status_code == 200
    assert [item["monitor"] for item in (await shop.api.get(f"{shop.path}/policy-warnings")).json()["items"]] == [
        "idle"
    ]


async def test_bulk_leaves_what_new_rules_forbid_as_it_is(shop: Shop) -> None:
    await shop.monitor("small", policy={"lagThreshold": 5})
    await rule(shop, limits={"lagThreshold": {"min": 100}})
    body = {"cluster": "main", "consumerGroup": "readers", "topics": ["orders"]}
    items = [{"put": {**body, "name": "small", "policy": {"lagThreshold": 5}}}, {"put": {**body, "name": "new"}}]
    answer = await shop.api.post(f"{shop.path}/monitors/bulk", json={"items": items})
    assert [item["outcome"] for item in answer.json()["items"]] == ["unchanged", "created"]


async def test_the_least_interval_of_the_tenant_is_in_force_too(shop: Shop, shared_url: str) -> None:
    await shop.monitor("usual")
    await shop.monitor("quick", policy={"samplingInterval": 5})
    answer = await shop.api.put(shop.path, json={"minSamplingSeconds": 30})
    assert [warning["monitor"] for warning in answer.json()["warnings"]] == ["quick"]
    found = rows(
        shared_url,
        "select m.name, m.sampling_ms from monitor m join tenant t on t.id = m.tenant_id where t.name = %s order by 1",
        shop.name,
    )
    assert found == [{"name": "quick", "sampling_ms": 5000}, {"name": "usual", "sampling_ms": 30000}]


async def test_rules_and_monitors_that_change_at_once_end_as_one_of_both_came_first(shop: Shop) -> None:
    for number in range(3):
        wanted = 40 + number
        puts: list[Any] = [shop.monitor(f"m{each}-{number}") for each in range(4)]
        answers: list[httpx.Response] = await asyncio.gather(
            *puts, shop.api.put(shop.path, json={"policyDefaults": {"sustainSeconds": wanted}})
        )
        assert {answer.status_code for answer in answers} <= {200, 201}
        listing = (await shop.api.get(f"{shop.path}/monitors")).json()["items"]
        assert {item["inheritedPolicy"]["sustainSeconds"] for item in listing} == {str(wanted)}


async def test_warnings_are_read_by_the_tenant_and_by_nobody_else(shop: Shop, other: Shop) -> None:
    await shop.monitor("small", policy={"lagThreshold": 5})
    await rule(shop, limits={"lagThreshold": {"min": 100}})
    mine, theirs = await shop.key("tenant-viewer"), await other.key("tenant-viewer")
    path = f"{shop.path}/policy-warnings"
    assert len((await shop.api.get(path, headers=mine)).json()["items"]) == 1
    assert (await shop.api.get(path, headers=theirs)).status_code == 404
