"""`lagscale export`, `get` and `delete`, and whose key may do what, on a real API and database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.integration.cli.conftest import Api, fresh
from tests.integration.cli.manifest_files import change, tenant_in
from tests.support.command_line import Command

pytestmark = pytest.mark.integration


def test_an_export_applies_back_to_no_change_and_to_a_fresh_database_with_its_secrets(
    command: Command, shop: Path, api: Api, other_api: Api, tmp_path: Path
) -> None:
    tenant = tenant_in(shop)
    command("apply", "-f", str(shop))
    policy = {"lagThreshold": "0500", "targetLag": "1.50", "scaleToZeroOnInvalidOffset": "true", "metric": "lag"}
    api("PUT", f"/tenants/{tenant}/monitors/odd", {
        "cluster": "main", "consumerGroup": "no", "topicPattern": "a: #b.*", "excludeTopics": ["c"], "policy": policy,
    })  # fmt: skip
    for form in ([], ["--json"]):
        file = tmp_path / f"export{len(form)}.{'json' if form else 'yaml'}"
        done = command("export", tenant, "-o", str(file), *form)
        assert done.code == 0
        assert done.err == (
            f"lagscale: cluster {tenant}/main: secrets are not exported; "
            "add them under spec.secrets to apply it to another system\n"
        )
        assert "canary" not in file.read_text()
        again = command("diff", "-f", str(file), "--prune")
        assert (again.code, again.out) == (0, "No changes: 6 objects up to date.\n")
    assert command("export", tenant).out == (tmp_path / "export0.yaml").read_text()

    refused = command("apply", "-f", str(file), against=other_api)
    assert refused.code == 2
    assert f"cluster {tenant}/main: spec.secrets: is required" in refused.err
    assert other_api("GET", "/tenants")["items"] == []
    document = json.loads(file.read_text())
    for item in document["items"]:
        if item["kind"] == "Cluster":
            item["spec"]["secrets"] = {"password": {"valueFrom": {"env": "KAFKA_PASSWORD"}}}
    file.write_text(json.dumps(document))
    assert command("apply", "-f", str(file), against=other_api).code == 0
    there = command("export", "--all", "--json", against=other_api)
    assert there.out == command("export", tenant, "--json").out


def test_an_automatically_registered_monitor_is_neither_exported_nor_pruned(
    command: Command, shop: Path, api: Api, shared_url: str
) -> None:
    tenant = tenant_in(shop)
    command("apply", "-f", str(shop))
    api("PUT", f"/tenants/{tenant}/monitors/came", {"cluster": "main", "consumerGroup": "g", "topics": ["t"]})
    with psycopg.connect(shared_url) as connection:
        connection.execute(
            "update monitor set auto_registered = true where name = 'came' and tenant_id = "
            "(select id from tenant where name = %s)", [tenant],
        )  # fmt: skip
    assert command("apply", "-f", str(shop), "--prune").out == "No changes: 5 objects up to date.\n"
    exported = command("export", tenant)
    assert "name: came" not in exported.out
    assert "omitted: 1 monitors registered by ScaledObjects" in exported.err
    assert "name: came" in command("export", tenant, "--auto-registered").out


def test_a_declared_monitor_that_registered_itself_is_taken_over(
    command: Command, shop: Path, api: Api, shared_url: str
) -> None:
    tenant = tenant_in(shop)
    command("apply", "-f", str(shop))
    with psycopg.connect(shared_url) as connection:
        connection.execute(
            "update monitor set auto_registered = true where name = 'orders' and tenant_id = "
            "(select id from tenant where name = %s)", [tenant],
        )  # fmt: skip
    told = command("diff", "-f", str(shop))
    assert (told.code, told.out.splitlines()[:2]) == (
        1, [f"~ monitor {tenant}/orders", "    autoRegistered: true -> false"],
    )  # fmt: skip
    assert command("apply", "-f", str(shop)).out.splitlines()[-1] == "1 changed, 4 unchanged."
    assert api("GET", f"/tenants/{tenant}/monitors/orders")["autoRegistered"] is False
    assert command("diff", "-f", str(shop)).code == 0


def test_rules_of_the_tenant_in_the_same_file_count(command: Command, shop: Path, api: Api) -> None:
    tenant = tenant_in(shop)
    rules = "policyDefaults: {sustainSeconds: 300}, policyLimits: {lagThreshold: {min: 100}}"
    change(shop, "displayName: The shop", rules)
    change(shop, ", sustainSeconds: 120", "")
    assert command("apply", "-f", str(shop)).code == 0
    assert command("diff", "-f", str(shop)).code == 0
    exported = command("export", tenant, "--json")
    (owner,) = [one for one in json.loads(exported.out)["items"] if one["kind"] == "Tenant"]
    assert owner["spec"] == {
        "policyDefaults": {"sustainSeconds": 300}, "policyLimits": {"lagThreshold": {"min": 100}},
    }  # fmt: skip
    change(shop, "lagThreshold: 500", "lagThreshold: 50")
    refused = command("apply", "-f", str(shop))
    assert refused.code == 2
    assert f"monitor {tenant}/orders: spec.policy.lagThreshold: " in refused.err


def test_objects_are_shown_as_tables_and_as_files(command: Command, shop: Path) -> None:
    tenant = tenant_in(shop)
    command("apply", "-f", str(shop))
    table = command("get", "monitors", tenant).out
    for text in ("orders", "refunds", "readers", "refunds, returns", "main"):
        assert text in table
    assert tenant in command("get", "tenants").out
    assert f"default/{tenant}" not in command("get", "binding", tenant).out
    assert "SASL_SSL" in command("get", "cluster", f"{tenant}/main", "-o", "yaml").out
    (one,) = [json.loads(command("get", "monitor", f"{tenant}/orders", "-o", "json").out)]
    assert one["spec"]["policy"] == {"lagThreshold": 500, "sustainSeconds": 120}
    assert one["metadata"] == {"name": "orders", "tenant": tenant}
    every = json.loads(command("get", "bindings", "-o", "json").out)
    items: list[dict[str, Any]] = every.get("items", [every])
    assert tenant in {item["metadata"]["tenant"] for item in items}


def test_what_is_not_there_exits_3(command: Command, shop: Path) -> None:
    tenant = tenant_in(shop)
    assert command("get", "monitors", tenant).code == 3
    assert command("export", tenant).code == 3
    assert command("delete", "tenant", tenant).code == 3
    command("apply", "-f", str(shop))
    assert command("get", "monitor", f"{tenant}/none").code == 3
    assert command("delete", "binding", f"{tenant}/none").code == 3


def test_objects_are_deleted_by_name_and_by_file(command: Command, shop: Path, api: Api) -> None:
    tenant = tenant_in(shop)
    command("apply", "-f", str(shop))
    assert command("delete", "cluster", f"{tenant}/main").code == 5
    assert command("delete", "monitor", f"{tenant}/orders").out.splitlines()[0] == f"deleted monitor {tenant}/orders"
    assert command("delete", "binding", f"{tenant}/{tenant}").code == 0
    assert command("delete", "-f", str(shop)).code == 2
    dry = command("delete", "-f", str(shop), "--dry-run")
    assert (dry.code, dry.out.splitlines()[-1]) == (0, "3 to delete, 2 unchanged.")
    done = command("delete", "-f", str(shop), "--yes")
    assert (done.code, done.out.splitlines()) == (0, [
        f"deleted monitor {tenant}/refunds", f"deleted cluster {tenant}/main", f"deleted tenant {tenant}",
        "3 deleted, 2 unchanged.",
    ])  # fmt: skip
    assert command("delete", "-f", str(shop), "--yes").out == "No changes: 5 objects up to date.\n"


def test_a_tenants_own_key_applies_what_it_may(command: Command, shop: Path, api: Api) -> None:
    tenant = tenant_in(shop)
    command("apply", "-f", str(shop))
    key = api("POST", f"/tenants/{tenant}/keys", {"name": "ci", "role": "tenant-admin"})["key"]
    change(shop, "lagThreshold: 500", "lagThreshold: 600")
    done = command("apply", "-f", str(shop), key=key)
    assert done.code == 0
    # The cluster of these files does not exist, which preflight and validation report.
    assert [line for line in done.err.splitlines() if ": warning: " not in line] == []
    change(shop, "displayName: The shop", "displayName: Ours")
    refused = command("apply", "-f", str(shop), key=key)
    assert refused.code == 4
    assert f"tenant {tenant}: This key has the role tenant-admin" in refused.err
    assert command("export", "--all", key=key).out.count("kind: Tenant") == 1


def test_a_foreign_tenant_is_answered_like_a_missing_one(
    command: Command, shop: Path, api: Api, tmp_path: Path
) -> None:
    command("apply", "-f", str(shop))
    mine = fresh("mine")
    api("PUT", f"/tenants/{mine}", {})
    key = api("POST", f"/tenants/{mine}/keys", {"name": "ci", "role": "tenant-admin"})["key"]
    told = []
    for tenant in (tenant_in(shop), fresh("none")):
        file = tmp_path / "one.yaml"
        file.write_text(
            f"kind: Monitor\nmetadata: {{name: m, tenant: {tenant}}}\nspec: {{cluster: main, consumerGroup: g}}\n"
        )
        ran = command("apply", "-f", str(file), key=key)
        told.append((ran.code, ran.out, ran.err.replace(tenant, "TENANT")))
    assert told[0] == told[1]
    assert told[0][0] == 2


@pytest.mark.parametrize(("key", "code"), [("", 4), ("wrong", 4), ("two words", 2)])
def test_a_key_that_is_not_valid_exits_4(command: Command, shop: Path, key: str, code: int) -> None:
    for arguments in (["apply", "-f", str(shop)], ["diff", "-f", str(shop)], ["get", "tenants"], ["export", "--all"]):
        assert command(*arguments, key=key).code == code
