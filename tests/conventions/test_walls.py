"""A new table or statement cannot forget the wall: whose rows it is about stands in it, or here with the reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from lagscale.store.queries import load
from tests.conventions.walled_sql import unnamed
from tests.support.policies import POLICIES

#: Table or view -> its column that names the tenant.
WALLED = {table: "id" if table == "tenant" else "tenant_id" for table in (*POLICIES, "every_lag_sample")}
#: Statement -> `table alias` that is about all tenants -> why. What is joined to it has to have its row's tenant.
ACROSS: Mapping[str, Mapping[str, str]] = {
    "monitor_mark_requested": {"monitor m": "ids that a replica answered, of all tenants; only a time is written"},
    "registered_bindings": {"namespace_binding b": "this is what tells the tenants apart"},
    "registered_freezes": {"scaling_freeze f": "a replica serves all tenants"},
    "registered_monitors": {"monitor m": "a replica serves all tenants"},
    "registered_tenants": {"tenant t": "a replica serves all tenants"},
    "scope_read": {"monitor m": "one scraper looks up for all tenants"},
    "scope_state": {"monitor m": "one scraper looks up for all tenants; the row's tenant is the monitor's"},
    "scrape_cluster_states": {"cluster c": "one scraper polls for all tenants; the row's tenant is the cluster's"},
    "scrape_clusters": {"cluster c": "one scraper polls for all tenants"},
    "scrape_failed_clusters": {"cluster_state s": "one scraper polls for all tenants"},
    "scrape_insert": {"lag_sample lag_sample": "one scraper writes for all tenants; each row carries its own"},
    "scrape_newest": {"lag_target t": "ids of the scraper's own plan, of all tenants"},
    "scrape_quotas": {"tenant t": "one scraper polls for all tenants"},
    "scrape_target_states": {"lag_target t": "one scraper polls for all tenants; the row's tenant is the target's"},
    "scrape_targets": {"lag_target t": "one scraper polls for all tenants"},
    "scrape_topic_ids": {"lag_target t": "ids of the scraper's own plan, of all tenants"},
}
#: Where a transaction of the registry has more than one tenant's sight -> why. Everything else goes by `tenant(...)`.
SIGHTS: Mapping[str, str] = {
    "services/single_monitor.py _register platform": "the one tenant of a one-tenant system is created at its start",
    "lagscale/store/registry/quotas.py put as_platform": "no tenant writes its own row; the platform's role is checked",
    "lagscale/store/registry/clusters.py reencrypt_all platform": "whoever has the database's URL and the keys seals all anew",
    "services/api/auth/authenticator.py _find_principal platform": "the tenant of a key is the result of the query",
    "services/api/auth/authenticator.py _find_token_principal platform": "the tenant of a token is the result of the query",
    "services/api/auth/rate_limits.py read platform": "a replica limits the requests of all tenants",
    "services/api/deps.py session within": "as many as the caller sees; the routes that ask for it are listed here",
    "services/api/audit/routes.py export_platform_audit Platform": "the platform's own audit, which is all of it",
    "services/api/audit/routes.py list_platform_audit Platform": "the platform's own audit, which is all of it",
    "services/api/bindings/routes.py bind platform_session": "namespaces exclude each other across tenants",
    "services/api/keys/routes.py create_platform_key Platform": "the platform's keys",
    "services/api/keys/routes.py _add_routes Platform": "the platform's keys, which its administrators list and end",
    "services/api/tenants/routes.py create_tenant Platform": "a tenant that does not exist has no context",
    "services/api/tenants/routes.py list_tenants AnyCaller": "as many as the caller sees: all, or its own",
    "services/api/tenants/routes.py put_tenant platform_session": "it may have to be created",
    "services/api/tenants/routes.py delete_tenant as_platform": "the audit of a deleted tenant is the platform's",
}


@pytest.fixture(scope="module")
def found(tracked: tuple[str, ...]) -> Mapping[str, set[str]]:
    """Statement -> the uses of walled tables in it that name no tenant."""
    names = [Path(path).stem for path in tracked if path.startswith("lagscale/store/") and path.endswith(".sql")]
    return {name: unnamed(load(name), WALLED, ACROSS.get(name, {})) for name in names if not name.startswith("part_")}


def test_every_use_of_a_walled_table_names_its_tenant_or_says_why_not(found: Mapping[str, set[str]]) -> None:
    wrong = {name: uses for name, uses in found.items() if uses != ACROSS.get(name, {}).keys()}
    assert wrong == {}, "join by tenant_id too, or give the reason in ACROSS; a stale reason is wrong as well"


@pytest.mark.parametrize(
    ("statement", "uses"),
    [
        ("select 1 from monitor as m where m.tenant_id = %(tenant)s::int", set()),
        ("select 1 from monitor where tenant_id = %(tenant)s::int and id = 1", set()),
        ("select 1 from tenant as t where t.id = %(tenant)s::int", set()),
        ("select 1 from monitor as m where m.tenant_id = any(%(tenants)s::int[])", set()),
        ("select 1 from monitor as m where m.id = %(id)s::int", {"monitor m"}),
        ("select m.tenant_id from monitor as m", {"monitor m"}),
        ("select 1 from monitor as m where m.tenant_id = m.tenant_id", {"monitor m"}),
        ("select 1 from monitor as m where m.tenant_id = 1 or m.id = 2", {"monitor m"}),
        ("select 1 from monitor as m where not m.tenant_id = %(tenant)s::int", {"monitor m"}),
        ("select 1 from monitor m join cluster c on c.id = m.cluster_id where m.tenant_id = 1", {"cluster c"}),
        ("select 1 from monitor m join cluster c on c.tenant_id = m.tenant_id where m.tenant_id = 1", set()),
        ("select 1 from monitor m join cluster c on c.tenant_id = m.tenant_id", {"monitor m", "cluster c"}),
        ("select 1 from asks a cross join lateral (select from every_lag_sample s where s.target_id = a.id) x",
         {"every_lag_sample s"}),
        ("select (select count(*) from monitor x where x.id = m.id) from monitor m where m.tenant_id = 1",
         {"monitor x"}),
        ("with monitor as (select 1 as id) select id from monitor", set()),
        ("with w as (select 1 from decision d) select from w", {"decision d"}),
        ("update monitor as m set name = 'x' where m.id = 1", {"monitor m"}),
        ("update monitor as m set name = 'x' from cluster c where m.tenant_id = 1", {"cluster c"}),
        ("delete from monitor as m where m.tenant_id = %(tenant)s::int", set()),
        ("delete from monitor_target as x using monitor m where x.monitor_id = m.id and m.tenant_id = 1",
         {"monitor_target x"}),
        ("insert into decision (monitor_id) values (1)", {"decision decision"}),
        ("insert into decision (monitor_id, tenant_id) select m.id, m.tenant_id from monitor m", {"monitor m"}),
    ],
)  # fmt: skip
def test_the_reader_of_statements_sees_what_is_forgotten(statement: str, uses: set[str]) -> None:
    assert unnamed(statement, WALLED) == uses


def test_no_statement_can_lose_a_tenant_unseen(found: Mapping[str, set[str]]) -> None:
    lost = 0
    for name in found:
        text = load(name)
        for part in re.finditer(r"\b(?:and|where|on) (\w+\.tenant_id = (?:%\(\w+\)s::\w+|[\w.]+))(?=\s)", text):
            lost += 1
            broken = f"{text[: part.start(1)]}true{text[part.end(1) :]}"
            assert unnamed(broken, WALLED, ACROSS.get(name, {})) != found[name], f"{name} without {part[1]}"
    assert lost > 20


def test_what_is_joined_to_all_tenants_rows_has_to_name_the_rows_tenant() -> None:
    joined = "select from monitor m join cluster c on {} where m.deleted_at is null"
    assert unnamed(joined.format("c.id = m.cluster_id"), WALLED, {"monitor m"}) == {"monitor m", "cluster c"}
    assert unnamed(joined.format("c.tenant_id = m.tenant_id"), WALLED, {"monitor m"}) == {"monitor m"}


def test_no_statement_on_a_walled_table_hides_in_a_module(product: Mapping[str, ast.Module]) -> None:
    hidden = re.compile(rf"(?i)\b(from|into|update|join|table|copy)\s+({'|'.join(WALLED)})\b(?! of\b)")
    found = {
        f"{path} {node.value[:60]}"
        for path, tree in product.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and hidden.search(node.value)
        if re.search(r"(?i)\b(select|insert|update|delete|copy)\b", node.value)
    }
    # COPY needs a table of its own, which is made as the samples' without a row of them.
    found -= {path for path in found if path.startswith("lagscale/store/samples/write.py create temporary table")}
    assert found == set(), "statements have files of their own, or are built of the registry's tables"


def test_every_wider_sight_of_the_registry_is_wanted(product: Mapping[str, ast.Module]) -> None:
    seen = {f"{path} {where}" for path, tree in product.items() for where in _sights(tree)}
    assert seen == SIGHTS.keys()


def _sights(tree: ast.Module) -> Iterator[str]:
    for statement in tree.body:
        # Routes that one function adds for a tenant and for the platform.
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            for argument in statement.value.args:
                if isinstance(argument, ast.Name) and argument.id in {"Platform", "AnyCaller"}:
                    yield f"{ast.unparse(statement.value.func)} {argument.id}"
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for argument in (*function.args.args, *function.args.kwonlyargs):
                if isinstance(argument.annotation, ast.Name) and argument.annotation.id in {"Platform", "AnyCaller"}:
                    yield f"{function.name} {argument.annotation.id}"
            for node in ast.walk(function):
                if isinstance(node, ast.Call):
                    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                    if name in {"platform", "platform_session", "within", "as_platform"}:
                        yield f"{function.name} {name}"
