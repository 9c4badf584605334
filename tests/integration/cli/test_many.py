"""A thousand monitors in files: applied, changed in part, pruned, and wrong in part."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.cli.conftest import Api, fresh
from tests.support.command_line import Command

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

MANY = 1000
ONE = """kind: Monitor
metadata: {{name: m-{number}, tenant: {tenant}}}
spec: {{cluster: main, consumerGroup: readers-{number}, topics: [orders], policy: {{lagThreshold: {threshold}}}}}
"""


def written(file: Path, tenant: str, numbers: range, threshold: int = 500) -> str:
    file.write_text(
        "---\n".join(ONE.format(number=number, tenant=tenant, threshold=threshold) for number in numbers),
        encoding="utf-8",
    )
    return str(file)


@pytest.fixture
def tenant(api: Api) -> str:
    """A fresh tenant with a cluster, and room for all."""
    name = fresh("shop")
    api("PUT", f"/tenants/{name}", {"maxMonitors": MANY})
    api("PUT", f"/tenants/{name}/clusters/main", {"bootstrapServers": "kafka:9092"})
    return name


def test_a_thousand_monitors_are_applied_changed_in_part_and_pruned(
    command: Command, api: Api, tenant: str, tmp_path: Path
) -> None:
    first = written(tmp_path / "a.yaml", tenant, range(MANY))
    done = command("apply", "-f", first)
    assert (done.code, done.err, done.out.splitlines()[-1]) == (0, "", f"{MANY} created, 0 unchanged.")
    assert command("apply", "-f", first).out == f"No changes: {MANY:,} objects up to date.\n"

    written(tmp_path / "a.yaml", tenant, range(100, MANY))
    written(tmp_path / "b.yaml", tenant, range(50, 100), threshold=700)
    told = command("diff", "-f", str(tmp_path), "--prune")
    assert (told.code, told.out.splitlines()[-1]) == (1, f"50 to change, 50 to delete, {MANY - 100} unchanged.")
    assert told.out.splitlines()[:2] == [f"~ monitor {tenant}/m-50", '    policy.lagThreshold: "500" -> "700"']
    done = command("apply", "-f", str(tmp_path), "--prune", "--yes")
    assert (done.code, done.out.splitlines()[-1]) == (0, f"50 changed, 50 deleted, {MANY - 100} unchanged.")
    assert api("GET", f"/tenants/{tenant}/monitors/m-50")["policy"] == {"lagThreshold": "700"}
    assert command("diff", "-f", str(tmp_path), "--prune").code == 0


def test_what_is_wrong_among_many_is_named_and_what_is_too_much_leaves_the_rest_done(
    command: Command, api: Api, tenant: str, tmp_path: Path
) -> None:
    file = Path(written(tmp_path / "a.yaml", tenant, range(60)))
    good = file.read_text()
    # Two faults that the API alone can find: topics that are no topics, and a window too short for its scraper's tick.
    file.write_text(good.replace("readers-7, topics: [orders]", 'readers-7, topics: ["no topic"]'))
    told = command("apply", "-f", str(file))
    assert told.code == 2
    (line,) = told.err.splitlines()
    assert f"a.yaml:31: monitor {tenant}/m-7: spec.topics" in line
    assert api("GET", f"/tenants/{tenant}/monitors")["items"] == []

    file.write_text(good)
    api("PUT", f"/tenants/{tenant}", {"maxMonitors": 45})
    done = command("apply", "-f", str(file))
    assert (done.code, done.out.splitlines()[-1]) == (10, "45 created, 0 unchanged, 15 failed.")
    assert len(done.err.splitlines()) == 15
    api("PUT", f"/tenants/{tenant}", {"maxMonitors": 60})
    assert command("apply", "-f", str(file)).out.splitlines()[-1] == "15 created, 45 unchanged."
