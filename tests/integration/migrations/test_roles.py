"""What each service's role may see: one tenant's rows, and no sample around the views."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import errors as pg

from devstack.database import Database

pytestmark = pytest.mark.integration

SERVICES = ("lagscale_api", "lagscale_scaler", "lagscale_scraper")
#: Tables that hold no tenant's rows; what is not here must have a tenant and a wall.
OF_NO_TENANT = {"alembic_version", "registry_change", "samples_kept", "scraper_lease", "tenant"}
FILL = """
insert into tenant (name) values ('one'), ('two');
insert into api_key (tenant_id, name, role, prefix, digest)
  select id, name, 'tenant-admin', name, '\\x00' from tenant;
insert into namespace_binding (tenant_id, namespace) select id, name from tenant;
insert into cluster (tenant_id, name, bootstrap) select id, 'main', '{k:1}' from tenant;
insert into monitor (tenant_id, name, cluster_id, consumer_group, topics, policy, sampling_ms, stale_after_ms,
  content_hash) select tenant_id, 'm', id, 'g', '{t}', '{}', 10000, 30000, '' from cluster;
insert into monitor_version (monitor_id, tenant_id, version, policy) select id, tenant_id, 1, '{}' from monitor;
insert into lag_target (tenant_id, cluster_id, consumer_group, topic, isolation_level)
  select tenant_id, id, 'g', 't', 'read_uncommitted' from cluster;
insert into monitor_target (monitor_id, target_id, tenant_id)
  select m.id, l.id, m.tenant_id from monitor m join lag_target l using (tenant_id);
insert into cluster_state select id, tenant_id, 'ok', '', now(), now() from cluster;
insert into monitor_scope (monitor_id, tenant_id, monitor_version, matched, code, since, seen_at)
  select id, tenant_id, 1, 0, 'ok', now(), now() from monitor;
insert into target_state select id, tenant_id, 'ok', '', now(), now() from lag_target;
insert into decision (told_at, tenant_id, monitor_id, replica, verdict, reason, code)
  select now(), tenant_id, id, 'r', 'calm', 'no_breach', 'OK' from monitor;
insert into audit_event (tenant_id, actor, action, object) select id, 'a', 'b', 'c' from tenant;
insert into scaling_freeze (tenant_id, reason, actor, until) select id, 'r', 'a', now() + interval '1 hour' from tenant;
insert into frozen_answer (freeze_id, monitor_id, overrides, tenant_id, since)
  select f.id, m.id, '', m.tenant_id, now() from scaling_freeze f join monitor m using (tenant_id);
insert into lag_sample (ts, target_id, tenant_id, epoch, notes, lags, ends, parts, never, oldest_age, total_lag,
  max_lag, lagging, none_total, none_max, none_lagging)
  select now() - n * interval '6 hours', l.id, tenant_id, 0, 0, '{1}', '{2}', 1, 0, 0, 1, 1, 1, 0, 0, 0
  from lag_target l, generate_series(0, 2) n;
"""


@pytest.fixture(scope="module")
def url(shared_url: str) -> str:
    """A database in which two tenants have a row in each table; what the tests do in it they undo."""
    with psycopg.connect(shared_url) as connection:
        connection.execute(FILL)
    return shared_url


def relations(connection: psycopg.Connection[Any]) -> list[tuple[str, bool, bool]]:
    """(name, has a tenant, has a forced wall) of every table of ours."""
    return connection.execute(
        "select c.oid::regclass::text, exists (select from pg_attribute a where a.attrelid = c.oid "
        "and a.attname = 'tenant_id'), c.relrowsecurity and c.relforcerowsecurity "
        "from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p')"
    ).fetchall()


def in_role(connection: psycopg.Connection[Any], role: str, tenant: object = "", platform: str = "") -> None:
    connection.execute(f"set local role {role}")
    connection.execute(
        "select set_config('lagscale.tenant', %s, true), set_config('lagscale.platform', %s, true)",
        (str(tenant), platform),
    )


def attempt(connection: psycopg.Connection[Any], role: str, tenant: object, statement: str) -> None:
    """Run the statement in the role, behind the tenant's wall, and undo it."""
    with connection.transaction(force_rollback=True):
        in_role(connection, role, tenant)
        connection.execute(statement)  # type: ignore[call-overload]


def tenants_of(connection: psycopg.Connection[Any], relation: str) -> set[int]:
    column = "id" if relation == "tenant" else "tenant_id"
    return {row[0] for row in connection.execute(f"select distinct {column} from {relation}")}


def test_every_table_with_a_tenant_has_a_forced_wall(url: str) -> None:
    with psycopg.connect(url) as connection:
        found = relations(connection)
    assert len(found) > 10
    for name, has_tenant, walled in found:
        assert has_tenant or name in OF_NO_TENANT, f"{name} has no tenant_id and is not listed"
        assert walled or name in OF_NO_TENANT - {"tenant"}, f"{name} has no forced row-level security"


def test_the_api_sees_the_set_tenants_rows_and_without_one_nothing(url: str) -> None:
    with psycopg.connect(url) as connection:
        first, second = [row[0] for row in connection.execute("select id from tenant order by id")]
        walled = [name for name, has_tenant, _ in relations(connection) if has_tenant and name != "lag_sample"]
        for relation in (*walled, "tenant", "tenant_lag_sample"):
            for tenant, platform, wanted in (
                (first, "", {first}),
                (second, "off", {second}),
                ("", "", set()),
                (99, "", set()),
            ):
                with connection.transaction(force_rollback=True):
                    in_role(connection, "lagscale_api", tenant, platform)
                    assert tenants_of(connection, relation) == wanted, relation
            with connection.transaction(force_rollback=True):
                in_role(connection, "lagscale_api", "", "on")
                everyone = set() if relation == "tenant_lag_sample" else {first, second}
                assert tenants_of(connection, relation) == everyone, relation


def test_the_api_writes_the_set_tenants_rows_only(url: str) -> None:
    with psycopg.connect(url) as connection:
        first, second = [row[0] for row in connection.execute("select id from tenant order by id")]
        for statement in (
            f"insert into cluster (tenant_id, name, bootstrap) values ({second}, 'x', '{{k:1}}')",
            f"update cluster set tenant_id = {second}",
            f"insert into audit_event (tenant_id, actor, action, object) values ({second}, 'a', 'b', 'c')",
            "insert into tenant (name) values ('three')",
            "insert into api_key (name, role, prefix, digest) values ('x', 'platform-admin', 'x', '')",
        ):
            with pytest.raises(pg.InsufficientPrivilege):
                attempt(connection, "lagscale_api", first, statement)
        with connection.transaction(force_rollback=True):
            in_role(connection, "lagscale_api", first)
            assert connection.execute("update cluster set name = 'mine'").rowcount == 1
            assert connection.execute(f"delete from monitor where tenant_id = {second}").rowcount == 0


def test_no_service_reads_samples_around_the_views(url: str, database: Database) -> None:
    with psycopg.connect(url) as connection:
        chunks = [
            row[0]
            for row in connection.execute(
                "select c.oid::regclass::text from pg_inherits i join pg_class c on c.oid = i.inhrelid "
                "where i.inhparent = 'lag_sample'::regclass"
            )
        ]
        if database.edition.startswith("timescaledb"):
            assert len(chunks) == 3
        for role in SERVICES:
            for relation in ("lag_sample", *chunks):
                with pytest.raises(pg.InsufficientPrivilege):
                    attempt(connection, role, 1, f"select * from {relation}")


@pytest.mark.parametrize(
    ("role", "view", "allowed"),
    [
        ("lagscale_api", "tenant_lag_sample", True),
        ("lagscale_api", "every_lag_sample", False),
        ("lagscale_scaler", "every_lag_sample", True),
        ("lagscale_scraper", "every_lag_sample", True),
    ],
)
def test_a_role_has_its_view_of_the_samples(url: str, role: str, view: str, allowed: bool) -> None:
    with psycopg.connect(url) as connection, connection.transaction(force_rollback=True):
        in_role(connection, role, 1)
        if allowed:
            assert connection.execute(f"select count(*) from {view}").fetchone() is not None
        else:
            with pytest.raises(pg.InsufficientPrivilege):
                connection.execute(f"select count(*) from {view}")


@pytest.mark.parametrize(
    ("role", "statement"),
    [
        ("lagscale_scaler", "update monitor set name = 'x'"),
        ("lagscale_scaler", "delete from monitor"),
        ("lagscale_scaler", "select * from api_key"),
        ("lagscale_scaler", "insert into lag_sample select * from every_lag_sample"),
        ("lagscale_scraper", "select * from api_key"),
        ("lagscale_scraper", "update monitor set name = 'x'"),
        ("lagscale_scraper", "update lag_target set topic = 'x'"),
        ("lagscale_scraper", "delete from lag_sample"),
        ("lagscale_api", "insert into lag_sample select * from tenant_lag_sample"),
        ("lagscale_api", "update audit_event set actor = 'x'"),
        ("lagscale_api", "delete from audit_event"),
        ("lagscale_api", "update registry_change set version = 0"),
        ("lagscale_api", "select drop_samples_before(now())"),
        ("lagscale_api", "drop table monitor"),
    ],
)
def test_a_role_may_not_do_anothers_work(url: str, role: str, statement: str) -> None:
    with psycopg.connect(url) as connection, pytest.raises(pg.InsufficientPrivilege):
        attempt(connection, role, 1, statement)


def test_roles_cannot_log_in_and_bypass_nothing(url: str) -> None:
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "select rolname, rolcanlogin or rolsuper or rolbypassrls or rolcreaterole from pg_roles "
            "where rolname like 'lagscale\\_%'"
        ).fetchall()
        owned = connection.execute(
            "select count(*) from pg_class where relowner in (select oid from pg_roles where rolname = any(%s))",
            (list(SERVICES),),
        ).fetchone()
    assert dict(found) == dict.fromkeys(
        ("lagscale_owner", "lagscale_reader", "lagscale_scraper", "lagscale_scaler", "lagscale_api"), False
    )
    assert owned == (0,)
