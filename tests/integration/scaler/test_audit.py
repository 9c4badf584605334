"""The audit of changes without a person: monitors that triggers register, and monitors that expire."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg import errors as pg

from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.tenancy import build_inline_name, compute_content_hash
from lagscale.domain.topics import TopicScope
from lagscale.errors import NotFound, QuotaExceeded
from lagscale.store.registrations.load import InlineMonitor, PostgresRegistrations
from lagscale.store.registry.monitor_spec import MonitorSpec

pytestmark = pytest.mark.integration


@pytest.fixture
def tenant(shared_url: str) -> int:
    """A tenant that may have two monitors, with the cluster `main`."""
    with psycopg.connect(shared_url) as connection:
        row = connection.execute(
            "insert into tenant (name, auto_register, max_monitors) values (%s, true, 2) returning id",
            [f"t-{uuid.uuid4().hex[:12]}"],
        ).fetchone()
        assert row is not None
        connection.execute("insert into cluster (tenant_id, name, bootstrap) values (%s, 'main', '{k:1}')", [row[0]])
    return int(row[0])


def build_inline_monitor(tenant: int, topic: str, namespace: str = "shop-prod") -> InlineMonitor:
    given = {"lagThreshold": "7"}
    digest = compute_content_hash("main", "orders", (topic,), given)
    name = build_inline_name("orders", (topic,), digest)
    policy = parse_policy(given)
    registered_by = {"instance": "default", "namespace": namespace}
    spec = MonitorSpec(name, "main", "orders", TopicScope((topic,)), given, policy=policy)
    return InlineMonitor(tenant, spec, registered_by=registered_by)


def events(url: str, tenant: int) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(
            "select actor, action, object, origin, before, after from audit_event where tenant_id = %s order by at",
            [tenant],
        ).fetchall()


async def test_a_trigger_that_registers_a_monitor_is_audited(pool: Any, tenant: int, shared_url: str) -> None:
    monitor = build_inline_monitor(tenant, "a-topic")
    await PostgresRegistrations(pool).register(monitor)
    # A later request for the same monitor changes nothing.
    await PostgresRegistrations(pool).register(build_inline_monitor(tenant, "a-topic", "other"))
    [(actor, action, thing, origin, before, after)] = events(shared_url, tenant)
    assert (actor, action, thing, origin, before) == (
        "keda default/shop-prod", "monitor.create", f"monitor/{monitor.spec.name}", None, None,
    )  # fmt: skip
    assert (after["topics"], after["policy"], after["auto_registered"]) == (["a-topic"], {"lagThreshold": "7"}, True)


async def test_a_rejected_registration_leaves_no_row(pool: Any, tenant: int, shared_url: str) -> None:
    store = PostgresRegistrations(pool)
    for topic in ("a", "b"):
        await store.register(build_inline_monitor(tenant, topic))
    with pytest.raises(QuotaExceeded):
        await store.register(build_inline_monitor(tenant, "c"))
    other = build_inline_monitor(tenant, "d")
    with pytest.raises(NotFound):
        await store.register(replace(other, spec=replace(other.spec, cluster="gone")))
    assert len(events(shared_url, tenant)) == 2


async def test_without_its_row_the_monitor_is_not_created(pool: Any, tenant: int, shared_url: str) -> None:
    # The database cannot store NUL, so the row cannot be written.
    with pytest.raises((pg.DataError, ValueError)):
        await PostgresRegistrations(pool).register(build_inline_monitor(tenant, "a", "\x00"))
    with psycopg.connect(shared_url) as connection:
        found = connection.execute("select count(*) from monitor where tenant_id = %s", [tenant]).fetchone()
    assert found == (0,)
    assert events(shared_url, tenant) == []


async def test_a_monitor_that_expires_is_audited(pool: Any, tenant: int, shared_url: str) -> None:
    monitor = build_inline_monitor(tenant, "a-topic")
    await PostgresRegistrations(pool).register(monitor)
    with psycopg.connect(shared_url) as connection:
        connection.execute(
            "update monitor set last_asked_at = now() - interval '8 days' where tenant_id = %s", [tenant]
        )
        connection.execute("set local role lagscale_scraper")
        connection.execute("select tidy_registry(clock_timestamp())")
    _, (actor, action, thing, _, before, after) = events(shared_url, tenant)
    assert (actor, action, thing, after) == ("housekeeping", "monitor.expire", f"monitor/{monitor.spec.name}", None)
    assert before["topics"] == ["a-topic"]
    assert before["last_asked_at"] is not None


async def test_the_scaler_writes_the_audit_of_its_tenant_alone_and_reads_none(tenant: int, shared_url: str) -> None:
    adding = "insert into audit_event (tenant_id, actor, action, object) values (%s, 'a', 'b', 'c')"
    for statement in (adding, "select * from audit_event", "update audit_event set actor = 'x'"):
        with psycopg.connect(shared_url) as connection:
            connection.execute("select set_config('lagscale.tenant', %s, true)", [str(tenant + 1)])
            connection.execute("set local role lagscale_scaler")
            with pytest.raises(pg.InsufficientPrivilege):
                connection.execute(statement, [tenant] if statement is adding else None)
