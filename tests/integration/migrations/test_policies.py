"""The policies, definers and views of the whole database are those that are wanted, and no service has more."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import errors as pg

from tests.integration.migrations.test_roles import SERVICES, attempt
from tests.support.policies import POLICIES, Policy

pytestmark = pytest.mark.integration


_API, _SCALER, _SCRAPER = SERVICES
#: What runs with the owner's rights, and who may call it; triggers nobody calls.
OWNERS_FUNCTIONS = {
    "drop_samples_before": {_SCRAPER},
    "tidy_registry": {_SCRAPER},
    "registration_changed": set[str](),
    "tell_registration_change": {_SCRAPER},
    "remember_monitor_target": set[str](),
}
#: Views, who owns them, and who may read them: rows are seen with the owner's sight.
VIEWS = {
    "tenant_lag_sample": ("lagscale_reader", {_API}),
    "every_lag_sample": ("lagscale_reader", {_SCALER, _SCRAPER}),
}
#: Unique index over the rows of all tenants -> why it tells nobody what another tenant has.
UNIQUE_OVER_ALL = {
    "api_key_prefix_key": "it is drawn at random",
    "namespace_binding_instance_namespace_key": "the platform's administrators alone bind",
    "tenant_name_key": "the platform's administrators alone make tenants",
}
_OURS = "current_schema()::regnamespace"


def test_the_policies_are_those_that_are_wanted(shared_url: str) -> None:
    found: dict[str, set[Policy]] = {}
    with psycopg.connect(shared_url) as connection:
        rows = connection.execute(
            "select tablename, policyname, array(select unnest(roles) order by 1)::text[], cmd, qual, with_check "
            "from pg_policies where permissive = 'PERMISSIVE' and schemaname not like '\\_timescaledb%'"
        ).fetchall()
        everything = connection.execute("select count(*) from pg_policies").fetchone()
    for table, name, roles, *others in rows:
        found.setdefault(table, set()).add(Policy(name, tuple(roles), *others))
    for table in found.keys() | POLICIES.keys():
        assert found.get(table) == POLICIES.get(table), f"of {table}: write a new policy down here, with its reason"
    assert everything == (len(rows),), "there is a policy of another kind, or of another schema"


def test_every_table_that_names_tenants_has_policies_and_they_are_forced(shared_url: str) -> None:
    with psycopg.connect(shared_url) as connection:
        rows = connection.execute(
            "select c.relname, c.relrowsecurity and c.relforcerowsecurity, pg_get_userbyid(c.relowner) from pg_class c "
            f"where c.relnamespace = {_OURS} and c.relkind in ('r', 'p', 'f', 'm') "
            "and (c.relname = 'tenant' or exists (select from pg_attribute a where a.attrelid = c.oid "
            "and a.attname like '%tenant%' and not a.attisdropped))"
        ).fetchall()
    assert {name: (forced, owner) for name, forced, owner in rows} == dict.fromkeys(POLICIES, (True, "lagscale_owner"))


def test_no_service_can_act_as_another_role(shared_url: str) -> None:
    with psycopg.connect(shared_url) as connection:
        for service in SERVICES:
            # A member of the owner, or of a role that bypasses the walls, has none.
            reachable = connection.execute(
                "select rolname from pg_roles where pg_has_role(%s, oid, 'MEMBER') and rolname <> %s",
                (service, service),
            ).fetchall()
            assert reachable == [], service
        rows = connection.execute(
            "select rolname, rolsuper or rolbypassrls or rolcreaterole or rolcreatedb or rolcanlogin from pg_roles "
            "where rolname like 'lagscale\\_%'"
        ).fetchall()
        owners = connection.execute(
            "select distinct d.classid::regclass::text, r.rolname from pg_shdepend d "
            "join pg_roles r on r.oid = d.refobjid where d.deptype = 'o' and r.rolname = any(%s) "
            # Roles are the server's, and other databases of it are other tests'.
            "and d.dbid in (0, (select oid from pg_database where datname = current_database()))",
            (list(SERVICES),),
        ).fetchall()
    assert not any(mighty for _, mighty in rows), rows
    assert owners == [], "a service's role owns something"


def test_what_runs_with_the_owners_rights_is_known(shared_url: str) -> None:
    with psycopg.connect(shared_url) as connection:
        definers = connection.execute(
            "select p.proname, p.proconfig, array(select r.rolname::text from pg_roles r where r.rolname = any(%s) "
            f"and has_function_privilege(r.oid, p.oid, 'EXECUTE') order by 1) from pg_proc p "
            f"where p.pronamespace = {_OURS} and p.prosecdef",
            (list(SERVICES),),
        ).fetchall()
    triggers = {"registration_changed", "remember_monitor_target"}
    assert {name for name, *_ in definers} == set(OWNERS_FUNCTIONS)
    for name, settings, callers in definers:
        assert any(setting.startswith("search_path=") for setting in settings or ()), f"{name} trusts its caller's path"
        if name not in triggers:
            assert set(callers) == OWNERS_FUNCTIONS[name], name


def test_what_sees_with_anothers_rights_is_known(shared_url: str) -> None:
    with psycopg.connect(shared_url) as connection:
        views = connection.execute(
            "select c.relname, pg_get_userbyid(c.relowner), array(select r.rolname::text from pg_roles r "
            "where r.rolname = any(%s) and has_table_privilege(r.oid, c.oid, 'SELECT') order by 1), c.reloptions "
            f"from pg_class c where c.relnamespace = {_OURS} and c.relkind = 'v'",
            (list(SERVICES),),
        ).fetchall()
        others = {name: (owner, set(readers)) for name, owner, readers, _ in views}
    assert {name: found for name, found in others.items() if found[1]} == VIEWS
    walled = {name: options for name, _, _, options in views}["tenant_lag_sample"]
    assert walled == ["security_barrier=true"], "a function in a condition would see rows that the view leaves out"


def test_a_name_is_unique_within_a_tenant_only(shared_url: str) -> None:
    """What is unique over all tenants tells by a conflict what another one has, unless only the platform names it."""
    with psycopg.connect(shared_url) as connection:
        indexes = connection.execute(
            "select i.indexrelid::regclass::text, array(select a.attname::text from pg_attribute a "
            "where a.attrelid = i.indrelid and a.attnum = any(i.indkey)) from pg_index i "
            "where i.indisunique and i.indrelid::regclass::text = any(%s)",
            (list(POLICIES),),
        ).fetchall()
    assert len(indexes) > 15
    # Ids are the store's: nobody can choose one.
    shared = {name for name, columns in indexes if not any(column.endswith("id") for column in columns)}
    assert shared == UNIQUE_OVER_ALL.keys()


def test_no_service_reaches_a_chunk_by_any_command(shared_url: str) -> None:
    with psycopg.connect(shared_url) as connection:
        connection.execute(_THREE_CHUNKS)
        chunks = [
            row[0]
            for row in connection.execute(
                "select inhrelid::regclass::text from pg_inherits where inhparent = 'lag_sample'::regclass"
            )
        ]
        hypertable = connection.execute("select count(*) from pg_extension where extname = 'timescaledb'").fetchone()
        assert (len(chunks) >= 3) == (hypertable == (1,))
        for role in SERVICES:
            for relation in ("lag_sample", *chunks):
                for statement in (
                    f"select 1 from {relation}",
                    f"copy {relation} to stdout",
                    f"update {relation} set tenant_id = 1",
                    f"delete from {relation}",
                    f"truncate {relation}",
                    f"create view seen as select * from {relation}",
                    f"insert into {relation} (target_id) select target_id from {relation}",
                ):
                    _refused(connection, role, statement)


def _refused(connection: psycopg.Connection[Any], role: str, statement: str) -> None:
    with pytest.raises(pg.InsufficientPrivilege):
        attempt(connection, role, 1, statement)


_THREE_CHUNKS = """
insert into lag_sample (ts, target_id, tenant_id, epoch, notes, lags, ends, parts, never, oldest_age, total_lag,
  max_lag, lagging, none_total, none_max, none_lagging)
select now() - n * interval '6 hours', 1, 1, 0, 0, '{1}', '{2}', 1, 0, 0, 1, 1, 1, 0, 0, 0 from generate_series(0, 2) n
"""
