"""`lagscale apply` and `diff` on a real API and database."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.cli.conftest import Api
from tests.integration.cli.manifest_files import SHOP, change, tenant_in
from tests.support.command_line import Command

pytestmark = pytest.mark.integration

FAULTS = """kind: Monitor
metadata: {{name: slip, tenant: {tenant}}}
spec:
  cluster: main
  consumerGroup: g
  policy:
    lagTreshold: 5
    sustainSeconds: -1
---
kind: Monitor
metadata: {{name: range, tenant: {tenant}}}
spec:
  cluster: maim
  consumergroup: g
---
kind: Monitor
metadata: {{name: interval, tenant: {tenant}}}
spec:
  cluster: main
  consumerGroup: g
  topics: [t]
  topicPattern: "x.*"
---
kind: Cluster
metadata: {{name: second, tenant: {tenant}}}
spec:
  bootstrapServers: [nonsense]
  secrets:
    password: {{valueFrom: {{env: NO_SUCH_VARIABLE}}}}
---
kind: Tenant
metadata: {{name: {tenant}}}
spec: {{displayName: Never}}
---
kind: Monitr
metadata: {{name: x, tenant: {tenant}}}
"""


def test_a_file_is_applied_in_the_order_of_need_and_again_to_no_change(command: Command, shop: Path, api: Api) -> None:
    tenant = tenant_in(shop)
    done = command("apply", "-f", str(shop))
    assert done.code == 0
    # The cluster of these files does not exist, which preflight and validation report.
    assert [line for line in done.err.splitlines() if ": warning: " not in line] == []
    assert done.out.splitlines() == [
        f"created tenant {tenant}",
        f"created cluster {tenant}/main",
        f"created monitor {tenant}/orders",
        f"created monitor {tenant}/refunds",
        f"created binding {tenant}/default/{tenant}",
        "5 created, 0 unchanged.",
    ]
    assert api("GET", f"/tenants/{tenant}/monitors/refunds")["topics"] == ["refunds", "returns"]
    assert api("GET", f"/tenants/{tenant}/clusters/main")["hasSecrets"] is True
    again = command("apply", "-f", str(shop))
    assert (again.code, again.out, again.err) == (0, "No changes: 5 objects up to date.\n", "")
    assert command("diff", "-f", str(shop)).code == 0


def test_diff_names_each_field_and_exits_1_and_changes_nothing(command: Command, shop: Path, api: Api) -> None:
    tenant = tenant_in(shop)
    command("apply", "-f", str(shop))
    change(shop, "lagThreshold: 500", "lagThreshold: 800, drainSeconds: 60")
    change(shop, "overridable: true", "overridable: false")
    before = api("GET", f"/tenants/{tenant}/monitors")
    told = command("diff", "-f", str(shop))
    assert told.code == 1
    assert told.err == ""
    assert told.out.splitlines() == [
        f"~ monitor {tenant}/orders",
        '    policy.drainSeconds: unset -> "60"',
        '    policy.lagThreshold: "500" -> "800"',
        f"~ monitor {tenant}/refunds",
        "    overridable: true -> unset",
        '    policy.drainSeconds: unset -> "60"',
        '    policy.lagThreshold: "500" -> "800"',
        "2 to change, 3 unchanged.",
    ]
    dry = command("apply", "-f", str(shop), "--dry-run")
    assert (dry.code, dry.out) == (0, told.out)
    assert api("GET", f"/tenants/{tenant}/monitors") == before


def test_quotas_are_declared_with_their_tenant_and_taken_back_by_a_file_without_them(
    command: Command, shop: Path, api: Api
) -> None:
    tenant = tenant_in(shop)
    change(shop, "displayName: The shop", "maxClusters: 80")
    assert command("apply", "-f", str(shop)).code == 0
    assert api("GET", f"/tenants/{tenant}/quotas")["clusters"] == {"limit": 80, "used": 1}
    exported = command("export", tenant).out
    assert "maxClusters: 80" in exported
    assert "maxPartitions" not in exported, "what is the default is not written"
    api("PUT", f"/tenants/{tenant}/quotas", {"clusters": 90, "partitions": 70_000})
    told = command("diff", "-f", str(shop))
    assert told.out.splitlines()[:3] == [
        f"~ tenant {tenant}",
        "    maxClusters: 90 -> 80",
        "    maxPartitions: 70000 -> unset",
    ]
    assert command("apply", "-f", str(shop)).code == 0
    assert api("GET", f"/tenants/{tenant}/quotas")["partitions"]["limit"] == 50_000


def test_another_secret_is_a_difference_that_is_not_shown(
    command: Command, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = tenant_in(shop)
    command("apply", "-f", str(shop))
    monkeypatch.setenv("KAFKA_PASSWORD", "another-canary")
    told = command("diff", "-f", str(shop))
    assert told.code == 1
    assert told.out.splitlines()[:2] == [f"~ cluster {tenant}/main", "    secrets.password: (hidden)"]
    done = command("apply", "-f", str(shop), "--json")
    assert done.code == 0
    assert [row["name"] for row in json.loads(done.out)["steps"] if row["action"] == "change"] == ["main"]
    for ran in (told, done):
        assert "canary" not in ran.out + ran.err


def test_faults_of_all_objects_come_together_with_their_lines_before_anything_is_changed(
    command: Command, shop: Path, api: Api, tmp_path: Path
) -> None:
    command("apply", "-f", str(shop))
    tenant = tenant_in(shop)
    before = api("GET", f"/tenants/{tenant}")
    file = tmp_path / "faults.yaml"
    file.write_text(FAULTS.format(tenant=tenant))
    told = command("apply", "-f", str(file))
    assert told.code == 2
    assert told.out == ""
    lines = [line.removeprefix(f"lagscale: {tmp_path}/faults.yaml:") for line in told.err.splitlines()]
    assert sorted(lines, key=lambda line: int(line.partition(":")[0])) == [
        f"7: monitor {tenant}/slip: spec.policy.lagTreshold: unknown policy key; did you mean lagThreshold?",
        f"8: monitor {tenant}/slip: spec.policy.sustainSeconds: must be at least 0 and at most 64800, not -1",
        f"12: monitor {tenant}/range: spec.consumerGroup: is required",
        f"14: monitor {tenant}/range: spec.consumergroup: unknown field; did you mean consumerGroup?",
        f"22: monitor {tenant}/interval: spec.topicPattern: cannot be combined with topics; set one of the two",
        "29: spec.secrets.password.valueFrom: env NO_SUCH_VARIABLE: is not set or empty; set it in the environment of `lagscale`",
        "35: kind: unknown kind; did you mean Monitor?",
    ]
    assert api("GET", f"/tenants/{tenant}") == before


def test_a_part_that_cannot_be_done_leaves_the_rest_done(command: Command, shop: Path, api: Api) -> None:
    change(shop, "displayName: The shop", "maxMonitors: 1")
    tenant = tenant_in(shop)
    done = command("apply", "-f", str(shop))
    assert done.code == 10
    assert done.out.splitlines()[-1] == "4 created, 0 unchanged, 1 failed."
    (line,) = (line for line in done.err.splitlines() if ": warning: " not in line)
    assert f"shop.yaml:8: monitor {tenant}/orders: " in line or f"shop.yaml:15: monitor {tenant}/refunds: " in line
    assert "The limit is 1 monitors" in line
    assert len(api("GET", f"/tenants/{tenant}/monitors")["items"]) == 1
    change(shop, "maxMonitors: 1", "maxMonitors: 2")
    assert command("apply", "-f", str(shop)).out.splitlines()[-1] == "1 created, 1 changed, 3 unchanged."


def test_prune_deletes_what_is_not_declared_of_named_kinds_only(command: Command, shop: Path, api: Api) -> None:
    tenant = tenant_in(shop)
    command("apply", "-f", str(shop))
    api("PUT", f"/tenants/{tenant}/clusters/spare", {"bootstrapServers": "a:1"})
    api("PUT", f"/tenants/{tenant}/monitors/old", {"cluster": "spare", "consumerGroup": "g"})
    api("POST", f"/tenants/{tenant}/bindings", {"namespace": f"{tenant}-old"})
    assert command("apply", "-f", str(shop)).out == "No changes: 5 objects up to date.\n"
    told = command("diff", "-f", str(shop), "--prune")
    assert told.code == 1
    assert told.out.splitlines() == [
        f"- binding {tenant}/default/{tenant}-old",
        f"- monitor {tenant}/old",
        f"- cluster {tenant}/spare",
        "3 to delete, 5 unchanged.",
    ]
    asked = command("apply", "-f", str(shop), "--prune")
    assert asked.code == 2
    assert "--yes: required to delete 3 object(s)" in asked.err
    monitors = shop.parent / "monitors.yaml"
    monitors.write_text(SHOP.format(tenant=tenant).split("\n---\n")[1])
    only = command("apply", "-f", str(monitors), "--prune", "--yes")
    assert (only.code, only.out.splitlines()) == (0, [f"deleted monitor {tenant}/old", "1 deleted, 2 unchanged."])
    done = command("apply", "-f", str(shop), "--prune", "--yes")
    assert (done.code, done.out.splitlines()[-1]) == (0, "2 deleted, 5 unchanged.")
    assert command("diff", "-f", str(shop), "--prune").code == 0


def test_what_stands_in_the_way_is_deleted_and_the_rest_tried_again(command: Command, shop: Path, api: Api) -> None:
    change(shop, "displayName: The shop", "maxMonitors: 2")
    tenant = tenant_in(shop)
    command("apply", "-f", str(shop))
    change(shop, "name: orders,", "name: renamed,")
    change(shop, f"namespace: {tenant}", f'instance: {tenant}, namespace: "*"')
    api("POST", f"/tenants/{tenant}/bindings", {"instance": tenant, "namespace": "one"})
    done = command("apply", "-f", str(shop), "--prune", "--yes")
    # The cluster of these files does not exist, which the new monitor's validation reports.
    (warning,) = done.err.splitlines()
    assert (done.code, "renamed: warning: cluster: The cluster could not be probed" in warning) == (0, True)
    assert command("diff", "-f", str(shop), "--prune").code == 0
    assert {one["name"] for one in api("GET", f"/tenants/{tenant}/monitors")["items"]} == {"refunds", "renamed"}
