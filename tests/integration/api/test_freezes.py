"""The brake over REST, and what it does to two replicas on a real database."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import httpx
import psycopg
import pytest

from devstack.server import free_port
from lagscale.store.connection import open_pool
from lagscale.store.registrations.answers import PostgresDecisions, PostgresFreezes
from lagscale.store.registrations.load import ROLE, PostgresRegistrations, changes
from lagscale.store.verdicts.judge import PostgresVerdicts
from services.scaler.grpc.proto import externalscaler_pb2 as pb
from services.scaler.grpc.proto import externalscaler_pb2_grpc as pb_grpc
from services.scaler.replica import Scaler, ScalerDependencies
from services.scaler.settings import ScalerSettings
from tests.integration.api.conftest import Shop
from tests.support.stored_rounds import write

pytestmark = pytest.mark.integration
POLICY = {"lagThreshold": 100, "sustainSeconds": 30, "samplingInterval": 10, "workSeconds": 0, "holdSeconds": 0}
LASTING = [(51, (0, 0)), (41, (150, 0)), (31, (160, 0)), (21, (180, 0)), (11, (200, 0)), (1, (900, 7))]
TWO_HOURS = {"reason": "a move", "forSeconds": 7200}
OF = {"tenant": "freeze", "cluster": "clusters/main/freeze", "monitor": "monitors/orders/freeze"}


async def freeze(shop: Shop, of: str = "monitor", **given: Any) -> httpx.Response:
    return await shop.api.put(f"{shop.path}/{OF[of]}", json=given or TWO_HOURS)


async def audited(url: str, shop: Shop) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(
            "select a.action, a.object, a.before->>'reason', a.after->>'reason' from audit_event a "
            "join tenant t on t.id = a.tenant_id where t.name = %s and a.action like '%%freeze' order by a.at",
            (shop.name,),
        ).fetchall()


def version(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("select version from registry_change").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("of", OF)
async def test_a_freeze_begins_is_shown_and_ends(shop: Shop, shared_url: str, of: str) -> None:
    await shop.monitor("orders", policy=POLICY)
    assert (await shop.api.get(f"{shop.path}/{OF[of]}")).status_code == 404
    began = datetime.now(UTC)
    made = await freeze(shop, of)
    assert made.status_code == 201, made.text
    body = made.json()
    assert (body["kind"], body["reason"], body["frozenBy"]) == (of, "a move", "bootstrap key")
    assert body["name"] == {"tenant": None, "cluster": "main", "monitor": "orders"}[of]
    since, until = (datetime.fromisoformat(body[name]) for name in ("since", "until"))
    assert until - since == timedelta(hours=2)
    assert abs(since - began) < timedelta(seconds=30)
    assert (await shop.api.get(f"{shop.path}/{OF[of]}")).json() == body
    assert (await shop.api.get(f"{shop.path}/freezes")).json() == {"items": [body], "next": None}
    assert (await shop.api.delete(f"{shop.path}/{OF[of]}")).status_code == 204
    assert (await shop.api.delete(f"{shop.path}/{OF[of]}")).status_code == 404
    assert (await shop.api.get(f"{shop.path}/freezes")).json()["items"] == []
    thing = {"tenant": f"tenant/{shop.name}", "cluster": "cluster/main", "monitor": "monitor/orders"}[of]
    assert await audited(shared_url, shop) == [
        (f"{of}.freeze", thing, None, "a move"), (f"{of}.unfreeze", thing, "a move", None),
    ]  # fmt: skip


async def test_again_it_has_another_end_and_the_same_beginning(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", policy=POLICY)
    first = (await freeze(shop)).json()
    until = (datetime.now(UTC) + timedelta(days=3)).replace(microsecond=0).isoformat()
    again = await freeze(shop, until=until, reason="longer")
    assert again.status_code == 200
    assert (again.json()["since"], again.json()["reason"]) == (first["since"], "longer")
    assert datetime.fromisoformat(again.json()["until"]) == datetime.fromisoformat(until)
    # The same once more is no change: nobody is told, and nothing is audited.
    before = version(shared_url)
    assert (await freeze(shop, until=until, reason="longer")).json() == again.json()
    assert version(shared_url) == before
    assert [row[2:] for row in await audited(shared_url, shop)] == [(None, "a move"), ("a move", "longer")]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"reason": "x"}, "until"),
        ({"reason": "x", "forSeconds": 5, "until": "2030-01-01T00:00:00Z"}, "until"),
        ({"reason": "x", "until": "2020-01-01T00:00:00Z"}, "until"),
        ({"reason": "x", "until": "9999-01-01T00:00:00Z"}, "until"),
        ({"reason": "x", "until": "2030-01-01T00:00:00"}, "until"),
        ({"reason": "x", "forSeconds": 0}, "forSeconds"),
        ({"reason": "x", "forSeconds": 30 * 86_400 + 1}, "forSeconds"),
        ({"reason": "", "forSeconds": 5}, "reason"),
        ({"reason": "two\nlines", "forSeconds": 5}, "reason"),
        ({"forSeconds": 5}, "reason"),
        ({"reason": "x", "forSeconds": 5, "for": 5}, "for"),
    ],
)
async def test_faults_name_their_field(shop: Shop, given: dict[str, Any], field: str) -> None:
    await shop.monitor("orders", policy=POLICY)
    refused = await freeze(shop, **given)
    assert refused.status_code == 422
    assert [fault["field"] for fault in refused.json()["errors"]] == [field]
    assert (await shop.api.get(f"{shop.path}/freezes")).json()["items"] == []


async def test_a_foreign_one_is_answered_like_a_missing_one(shop: Shop, other: Shop) -> None:
    await shop.monitor("orders", policy=POLICY)
    await other.monitor("orders", policy=POLICY)
    await freeze(shop)
    headers = await other.key("tenant-admin")
    for method, body in (("GET", None), ("PUT", TWO_HOURS), ("DELETE", None)):
        for of in OF.values():
            foreign, missing = [
                await shop.api.request(method, f"/v1/tenants/{tenant}/{of}", json=body, headers=headers)
                for tenant in (shop.name, "no-such-tenant")
            ]
            assert foreign.status_code == missing.status_code == 404
            assert foreign.content == missing.content
        for of in ("clusters/none/freeze", "monitors/none/freeze"):
            missing = await shop.api.request(method, f"{other.path}/{of}", json=body, headers=headers)
            assert missing.status_code == 404
    assert (await shop.api.get(f"{other.path}/freezes", headers=headers)).json()["items"] == []
    assert len((await shop.api.get(f"{shop.path}/freezes")).json()["items"]) == 1


async def test_viewers_look_and_admins_freeze(shop: Shop) -> None:
    await shop.monitor("orders", policy=POLICY)
    viewer, admin = await shop.key("tenant-viewer"), await shop.key("tenant-admin")
    for of in OF.values():
        url = f"{shop.path}/{of}"
        assert (await shop.api.put(url, json=TWO_HOURS, headers=viewer)).status_code == 403
        assert (await shop.api.put(url, json=TWO_HOURS, headers=admin)).status_code == 201
        assert (await shop.api.get(url, headers=viewer)).status_code == 200
        assert (await shop.api.delete(url, headers=viewer)).status_code == 403
    listed = (await shop.api.get(f"{shop.path}/freezes", params={"limit": 2}, headers=viewer)).json()
    rest = (await shop.api.get(f"{shop.path}/freezes", params={"cursor": listed["next"]}, headers=viewer)).json()
    assert [one["kind"] for one in listed["items"] + rest["items"]] == ["cluster", "monitor", "tenant"]


async def test_ended_freezes_are_in_the_audit_only(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", policy=POLICY)
    await freeze(shop)
    with psycopg.connect(shared_url) as connection:
        connection.execute("update scaling_freeze set since = now() - interval '2 hours', until = now()")
    assert (await shop.api.get(f"{shop.path}/freezes")).json()["items"] == []
    assert (await shop.api.delete(f"{shop.path}/{OF['monitor']}")).status_code == 404
    # The name is free for the next one, which begins now.
    again = await freeze(shop)
    assert again.status_code == 201
    assert datetime.now(UTC) - datetime.fromisoformat(again.json()["since"]) < timedelta(seconds=30)
    assert [row[0] for row in await audited(shared_url, shop)] == ["monitor.freeze", "monitor.freeze"]


async def test_a_deleted_monitor_takes_its_freeze_along(shop: Shop) -> None:
    await shop.monitor("orders", policy=POLICY)
    await freeze(shop)
    assert (await shop.api.delete(f"{shop.path}/monitors/orders")).status_code == 204
    assert (await shop.api.get(f"{shop.path}/freezes")).json()["items"] == []
    await shop.monitor("orders", policy=POLICY)
    assert (await shop.api.get(f"{shop.path}/{OF['monitor']}")).status_code == 404
    assert (await freeze(shop)).status_code == 201


async def test_two_first_ones_at_once_make_one(shop: Shop) -> None:
    await shop.monitor("orders", policy=POLICY)
    made = await asyncio.gather(*(freeze(shop, "tenant") for _ in range(4)))
    assert sorted(one.status_code for one in made) == [200, 200, 200, 201]
    assert len((await shop.api.get(f"{shop.path}/freezes")).json()["items"]) == 1


async def test_verdict_and_explanation_show_what_is_kept(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", policy=POLICY)
    write(shared_url, shop.name, "orders", LASTING, members=2)
    began = (await freeze(shop)).json()["since"]
    await freeze(shop, "tenant", reason="a sale", forSeconds=60)
    # Nobody has asked as KEDA does: it is worked out from the samples until then. Later ones change nothing.
    write(shared_url, shop.name, "orders", [(0, (0, 0))], members=2)
    for part in ("verdict", "explain"):
        found = (await shop.api.get(f"{shop.path}/monitors/orders/{part}")).json()
        frozen = found["frozen"]
        assert frozen["answer"]["value"] == 200
        assert (frozen["answer"]["active"], frozen["answer"]["lastKnown"]) == (True, True)
        after = datetime.fromisoformat(began) - datetime.fromisoformat(frozen["since"])
        assert timedelta(0) <= after < timedelta(milliseconds=1)
        assert frozen["reasons"] == ["a move", "a sale"]
        assert frozen["sentence"].endswith("(a move): KEDA gets the last-known answer.")
        assert frozen["sentence"] in (found["sentence"] if part == "explain" else found["answerSentence"])
    # Before the freeze there was none.
    earlier = {"at": str(round((time.time() - 20) * 1000))}
    with psycopg.connect(shared_url) as connection:
        connection.execute("update monitor set created_at = created_at - interval '1 hour'")
    found = (await shop.api.get(f"{shop.path}/monitors/orders/explain", params=earlier)).json()
    assert found["frozen"] is None


class Replicas:
    """Scalers in this process on the real database, asked as KEDA asks."""

    def __init__(self, url: str, shop: Shop, folder: Path, stack: AsyncExitStack) -> None:
        self._url, self._shop, self._folder, self._stack = url, shop, folder, stack
        self._running: list[Scaler] = []

    async def start(self, name: str, address: str = "") -> tuple[Scaler, Any]:
        url = address or self._url
        pool = open_pool(url, ROLE, 4, application=f"test-{name}")
        await pool.open(wait=False)
        self._stack.push_async_callback(pool.close, timeout=1.0)
        parts = ScalerDependencies(
            PostgresVerdicts(pool), PostgresRegistrations(pool), PostgresDecisions(pool), PostgresFreezes(pool),
            lambda: changes(url),
        )  # fmt: skip
        settings = ScalerSettings(
            database_url=url, cache_dir=self._folder / name, scaler_drain_seconds=0, scaler_snapshot_ttl_seconds=0.05,
            scaler_http_listen="127.0.0.1:0",
        )  # type: ignore[arg-type]  # fmt: skip
        scaler = Scaler(parts, settings, name)
        port, _ = await scaler.start("127.0.0.1:0")
        self._running.append(scaler)
        options = [("grpc.use_local_subchannel_pool", 1)]
        channel = await self._stack.enter_async_context(grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options))
        return scaler, pb_grpc.ExternalScalerStub(channel)

    async def stop(self, scaler: Scaler | None = None) -> None:
        """Stop one, or all that run."""
        for running in [one for one in self._running if scaler in (None, one)]:
            self._running.remove(running)
            await running.stop()

    async def value(self, stub: Any) -> float | str:
        """What KEDA is told, or the code in its place."""
        ref = pb.ScaledObjectRef(namespace=self._shop.name, scalerMetadata={"serviceType": "orders"})
        try:
            request = pb.GetMetricsRequest(scaledObjectRef=ref, metricName="orders")
            answer = await stub.GetMetrics(request, timeout=5)
        except grpc.aio.AioRpcError as error:
            return str(error.code().name)
        return float(answer.metricValues[0].metricValueFloat)

    async def active(self, stub: Any) -> bool:
        ref = pb.ScaledObjectRef(namespace=self._shop.name, scalerMetadata={"serviceType": "orders"})
        return bool((await stub.IsActive(ref, timeout=5)).result)

    async def until(self, stub: Any, wanted: float | str, seconds: float = 5.0) -> None:
        async with asyncio.timeout(seconds):
            while await self.value(stub) != wanted:
                pass  # Each call takes its time.


@pytest.fixture
async def replicas(shop: Shop, shared_url: str, tmp_path: Path) -> AsyncIterator[Replicas]:
    async with AsyncExitStack() as stack:
        made = Replicas(shared_url, shop, tmp_path, stack)
        yield made
        await made.stop()


async def bind(shop: Shop) -> None:
    made = await shop.api.post(f"{shop.path}/bindings", json={"namespace": shop.name})
    assert made.is_success, made.text


async def frozen_in_both(shop: Shop, url: str, replicas: Replicas) -> tuple[Scaler, list[Any]]:
    """Two replicas that keep 200 since a freeze, though the samples say 0 by now: the first one, and both stubs."""
    await bind(shop)
    await shop.monitor("orders", policy=POLICY)
    write(url, shop.name, "orders", LASTING, members=2)
    one, first = await replicas.start("one")
    _, second = await replicas.start("two")
    for stub in (first, second):
        await replicas.until(stub, 200.0)
    await freeze(shop)
    write(url, shop.name, "orders", [(0.0, (0, 0))], members=2)
    kept: list[Any] = []
    async with asyncio.timeout(5):
        while not kept:
            assert await replicas.value(first) in (200.0, 0.0)
            with psycopg.connect(url) as connection:
                kept = connection.execute(
                    "select a.value, a.active from frozen_answer a join tenant t on t.id = a.tenant_id "
                    "where t.name = %s",
                    (shop.name,),
                ).fetchall()
    assert kept == [(200.0, True)]
    for stub in (first, second):
        await replicas.until(stub, 200.0)
        assert await replicas.active(stub)
    return one, [first, second]


async def test_what_is_kept_is_written_down_and_explained(shop: Shop, shared_url: str, replicas: Replicas) -> None:
    _, (first, _) = await frozen_in_both(shop, shared_url, replicas)
    rows: list[Any] = []
    async with asyncio.timeout(10):
        while not rows:
            assert await replicas.value(first) == 200.0
            found = (await shop.api.get(f"{shop.path}/monitors/orders/explain")).json()
            rows = [row for row in found["answers"] if row["reason"] == "frozen"]
    assert {(row["grpcCode"], row["value"], row["lastKnown"], row["agrees"]) for row in rows} == {
        ("OK", 200.0, True, False)
    }
    assert {tuple(row["reasons"]) for row in rows} == {("frozen",)}
    assert "Scaling was frozen, so KEDA got the last-known answer" in found["sentence"]
    assert (found["evaluation"]["value"], found["frozen"]["answer"]["value"]) == (0.0, 200.0)


async def test_neither_retention_nor_edits_nor_restarts_change_what_is_kept(
    shop: Shop, shared_url: str, replicas: Replicas
) -> None:
    one, (first, second) = await frozen_in_both(shop, shared_url, replicas)
    with psycopg.connect(shared_url) as connection:
        connection.execute(
            "delete from lag_sample s using tenant t where t.id = s.tenant_id and t.name = %s", (shop.name,)
        )
    await shop.monitor("orders", policy={**POLICY, "lagThreshold": 5})
    _, third = await replicas.start("three")
    for stub in (first, second, third):
        await replicas.until(stub, 200.0)
        assert await replicas.active(stub)
    # A process that begins again without any store has it from its scratch.
    await replicas.stop(one)
    _, alone = await replicas.start("one", f"postgresql://nobody@127.0.0.1:{free_port()}/none")
    assert await replicas.value(alone) == 200.0
    # It ends by hand, for all that hear of it.
    assert (await shop.api.delete(f"{shop.path}/{OF['monitor']}")).status_code == 204
    for stub in (second, third):
        await replicas.until(stub, "FAILED_PRECONDITION")
    assert await replicas.value(alone) == 200.0
