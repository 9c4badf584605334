"""`apply`, `diff`, `get`, `delete`, `export` against an API in memory: exit codes, partial failures, many objects."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import httpx
import pytest

from services.cli import output
from services.cli.commands import apply
from tests.support.command_line import Command
from tests.unit.cli.fake_api import Answer, FakeApi, problem

KEY = "canary-key"


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAGSCALE_API_KEY", KEY)
    monkeypatch.setenv("COLUMNS", "200")


def monitor(name: str, tenant: str = "shop", cluster: str = "main", **policy: int) -> str:
    body = {"cluster": cluster, "consumerGroup": "g", "topics": ["t"], "policy": policy}
    return json.dumps({"kind": "Monitor", "metadata": {"name": name, "tenant": tenant}, "spec": body}) + "\n"


def written(tmp_path: Path, *documents: str) -> str:
    file = tmp_path / "file.yaml"
    file.write_text("---\n".join(documents))
    return str(file)


def test_what_is_so_is_not_written_again(command: Command, fake: FakeApi, tmp_path: Path) -> None:
    file = written(tmp_path, *(monitor(f"m-{number}") for number in range(5)))
    assert command("apply", "-f", file).out.splitlines()[-1] == "5 created, 0 unchanged."
    fake.asked.clear()
    assert command("apply", "-f", file).code == 0
    assert [one for one in fake.asked if not one.startswith("GET")] == []


def test_a_thousand_monitors_that_are_so_take_few_requests(command: Command, fake: FakeApi, tmp_path: Path) -> None:
    fake.page = 500
    file = written(tmp_path, *(monitor(f"m-{number}") for number in range(1000)))
    command("apply", "-f", file)
    fake.asked.clear()
    assert command("diff", "-f", file).out == "No changes: 1,000 objects up to date.\n"
    assert len(fake.asked) <= 6


def test_the_version_that_was_read_is_what_is_changed(command: Command, fake: FakeApi, tmp_path: Path) -> None:
    command("apply", "-f", written(tmp_path, monitor("m")))
    seen: list[str | None] = []

    def note(request: httpx.Request) -> Answer | None:
        if request.method != "GET" and "dryRun" not in request.url.params:
            seen.append(request.headers.get("If-Match"))
        return None

    fake.before = note
    command("apply", "-f", written(tmp_path, monitor("m", lagThreshold=7)))
    command("delete", "monitor", "shop/m")
    assert seen == ['"1"', '"2"']


def refusing(name: str, answer: Answer, *, dry: bool = False) -> object:
    def before(request: httpx.Request) -> Answer | None:
        mine = request.method != "GET" and request.url.path.endswith(name)
        return answer if mine and ("dryRun" in request.url.params) <= dry else None

    return before


FULL = problem(429, "quota-exceeded", "The quota is used up; ask for more.")
TAKEN = problem(409, "conflict", "It is taken.")
INVALID = problem(
    422,
    "invalid-input",
    "wrong",
    [{"field": "policy.lagThreshold", "text": "must be less"}, {"field": "name", "text": "no"}],
)


@pytest.mark.parametrize(
    ("answer", "alone", "told"),
    [
        (FULL, 6, "monitor shop/m: The quota is used up; ask for more."),
        (TAKEN, 5, "monitor shop/m: It is taken."),
        (problem(412, "precondition-failed", "It changed."), 5, "monitor shop/m: It changed."),
        (problem(403, "forbidden", "No."), 4, "monitor shop/m: No."),
        (problem(503, "store-unavailable", "Retry."), 8, "monitor shop/m: Retry."),
        (problem(500, "internal-error", "A defect."), 1, "monitor shop/m: A defect."),
        (INVALID, 2, "monitor shop/m: spec.policy.lagThreshold: must be less"),
    ],
)
def test_what_is_refused_alone_has_its_own_code_and_beside_others_10(
    command: Command, fake: FakeApi, tmp_path: Path, *, answer: Answer, alone: int, told: str
) -> None:
    fake.before = refusing("/m", answer)  # type: ignore[assignment]
    file = written(tmp_path, monitor("m", lagThreshold=5))
    done = command("apply", "-f", file)
    assert done.code == alone
    assert f"lagscale: {file}:1: {told}" in done.err
    assert done.out == "0 unchanged, 1 failed.\n"
    both = command("apply", "-f", written(tmp_path, monitor("a"), monitor("m", lagThreshold=5)))
    assert both.code == 10
    assert both.out == "created monitor shop/a\n1 created, 0 unchanged, 1 failed.\n"


def test_faults_that_only_the_api_knows_come_before_any_change(command: Command, fake: FakeApi, tmp_path: Path) -> None:
    fake.before = refusing("/m", INVALID, dry=True)  # type: ignore[assignment]
    done = command("apply", "-f", written(tmp_path, monitor("a"), monitor("m", lagThreshold=5)))
    assert done.code == 2
    assert [line.rpartition("file.yaml:")[2] for line in done.err.splitlines()] == [
        "3: monitor shop/m: spec.policy.lagThreshold: must be less", "3: monitor shop/m: metadata.name: no",
    ]  # fmt: skip
    assert "/v1/tenants/shop/monitors/a" not in fake.objects


def test_what_needs_something_refused_is_not_tried(command: Command, fake: FakeApi, tmp_path: Path) -> None:
    fake.before = refusing("/clusters/second", FULL)  # type: ignore[assignment]
    cluster = "kind: Cluster\nmetadata: {name: second, tenant: shop}\nspec: {bootstrapServers: [a:1]}\n"
    done = command("apply", "-f", written(tmp_path, cluster, monitor("m", cluster="second"), monitor("n")))
    assert done.code == 10
    assert "monitor shop/m: skipped: requires cluster shop/second, which failed" in done.err
    assert "PUT /v1/tenants/shop/monitors/m" not in fake.asked
    assert "/v1/tenants/shop/monitors/n" in fake.objects
    alone = command("apply", "-f", written(tmp_path, cluster, monitor("m", cluster="second")))
    assert alone.code == 6


def test_an_api_that_goes_away_is_not_asked_for_the_rest(command: Command, fake: FakeApi, tmp_path: Path) -> None:
    writes = threading.Semaphore(3)

    def before(request: httpx.Request) -> Answer | None:
        if request.method == "PUT" and "dryRun" not in request.url.params and not writes.acquire(blocking=False):
            raise httpx.ConnectError("gone")
        return None

    fake.before = before
    done = command("apply", "-f", written(tmp_path, *(monitor(f"m-{number:03}") for number in range(50))))
    assert done.code == 10
    assert done.out.splitlines()[-1] == "3 created, 0 unchanged, 47 failed."
    assert "skipped: Cannot connect to the Lagscale API" in done.err
    assert sum(one.startswith("PUT") and "dryRun" not in one for one in fake.asked) < 3 + 10


def test_calls_that_come_too_fast_wait_as_long_as_they_are_told(
    command: Command, fake: FakeApi, tmp_path: Path, waits: list[float]
) -> None:
    refusals = threading.Semaphore(2)

    def before(request: httpx.Request) -> Answer | None:
        mine = request.method == "PUT" and refusals.acquire(blocking=False)
        return problem(429, "too-many-requests", "Slower.", **{"Retry-After": "7"}) if mine else None

    fake.before = before
    assert command("apply", "-f", written(tmp_path, monitor("m"))).code == 0
    assert waits == [7, 7]


def test_a_wait_without_end_is_an_error(command: Command, fake: FakeApi, tmp_path: Path, waits: list[float]) -> None:
    fake.before = lambda request: (
        problem(429, "too-many-requests", "Slower.", **{"Retry-After": "7"}) if request.method == "PUT" else None
    )
    assert command("apply", "-f", written(tmp_path, monitor("m"))).code == 6
    assert set(waits) == {7}
    fake.before = lambda _: problem(429, "too-many-requests", "Slower.", **{"Retry-After": "86400"})
    waits.clear()
    assert command("get", "tenants").code == 6
    assert waits == []


def test_an_interrupted_run_tells_what_was_done(
    command: Command, fake: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from services.cli.objects.requests import ObjectClient

    def interrupted(_self: object, refs: object, _told: object) -> None:
        if refs:
            raise KeyboardInterrupt

    monkeypatch.setattr(ObjectClient, "delete_all", interrupted)
    fake.objects["/v1/tenants/shop/monitors/old"] = {"name": "old", "version": 1}
    done = command("apply", "-f", written(tmp_path, monitor("m")), "--prune", "--yes")
    assert done.code not in {0, 1, 10}
    assert done.out == "created monitor shop/m\n1 created, 0 unchanged.\n"


@pytest.mark.parametrize("answer", [problem(500, "internal-error", "A defect."), Answer(502, text="<html>")])
def test_a_diff_that_cannot_be_made_does_not_exit_1(
    command: Command, fake: FakeApi, tmp_path: Path, answer: Answer
) -> None:
    file = written(tmp_path, monitor("m"))
    assert command("diff", "-f", file).code == 1
    fake.before = lambda _: answer
    assert command("diff", "-f", file).code == 10
    fake.before = refusing("/m", FULL, dry=True)  # type: ignore[assignment]
    refused = command("diff", "-f", file)
    assert refused.code == 6
    assert "+ monitor shop/m" in refused.out


def test_parents_that_are_nowhere_are_named_with_what_is_near(command: Command, tmp_path: Path) -> None:
    done = command("diff", "-f", written(tmp_path, monitor("m", cluster="mian"), monitor("n", tenant="none")))
    assert done.code == 2
    first, second = (line.rpartition("file.yaml:")[2] for line in done.err.splitlines())
    assert first == "3: monitor none/n: metadata.tenant: tenant none not found, or not visible with this API key, and " \
        "not declared in these files"  # fmt: skip
    assert second == "1: monitor shop/m: spec.cluster: cluster mian not found in tenant shop, and not declared in these " \
        "files; did you mean main?"  # fmt: skip


def test_policies_are_judged_by_the_tenant_of_the_file_before_it_is_there(command: Command, tmp_path: Path) -> None:
    tenant = "kind: Tenant\nmetadata: {name: new}\nspec: {minSamplingSeconds: 30}\n"
    cluster = "kind: Cluster\nmetadata: {name: main, tenant: new}\nspec: {bootstrapServers: [a:1]}\n"
    done = command("diff", "-f", written(tmp_path, tenant, cluster, monitor("m", "new", samplingInterval=10)))
    assert done.code == 2
    assert ":9: monitor new/m: spec.policy.samplingInterval: " in done.err
    assert command("diff", "-f", written(tmp_path, tenant, cluster, monitor("m", "new", samplingInterval=30))).code == 1


def test_a_new_cluster_that_lacks_a_password_is_warned_of(command: Command, fake: FakeApi, tmp_path: Path) -> None:
    security = "{protocol: SASL_SSL, mechanism: PLAIN, username: u, certificate: c}"
    cluster = (
        f"kind: Cluster\nmetadata: {{name: c, tenant: shop}}\nspec: {{bootstrapServers: [a:1], security: {security}}}\n"
    )
    done = command("apply", "-f", written(tmp_path, cluster))
    assert done.code == 0
    assert done.err.count("file.yaml:1: cluster shop/c: warning: ") == 2
    assert "spec.secrets.password" in done.err
    assert "spec.secrets.key" in done.err


def test_warnings_of_the_api_are_told(command: Command, fake: FakeApi, tmp_path: Path) -> None:
    body = {"name": "m", "version": 1, "warnings": ["The topic does not exist.", {"field": "topics", "text": "none"}]}
    fake.before = lambda request: Answer(201, json=body) if request.method == "PUT" else None
    done = command("apply", "-f", written(tmp_path, monitor("m")))
    assert (done.code, done.out.splitlines()[0]) == (0, "created monitor shop/m")
    assert done.err.count("monitor shop/m: warning: The topic does not exist.") == 1
    assert done.err.count("monitor shop/m: warning: topics: none") == 1


def test_warnings_of_what_is_created_are_printed_though_the_plan_had_none(
    command: Command, fake: FakeApi, tmp_path: Path
) -> None:
    def answer(request: httpx.Request) -> Answer | None:
        if request.method != "PUT":
            return None
        warnings = (
            [] if "dryRun=true" in str(request.url) else [{"field": "topics.0", "text": "topic t does not exist"}]
        )
        return Answer(201, json={"name": "m", "version": 1, "warnings": warnings})

    fake.before = answer
    done = command("apply", "-f", written(tmp_path, monitor("m")))
    assert (done.code, done.out.splitlines()[0]) == (0, "created monitor shop/m")
    assert done.err.count("monitor shop/m: warning: topics.0: topic t does not exist") == 1


def test_a_terminal_is_asked_before_anything_is_deleted(
    command: Command, fake: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.objects["/v1/tenants/shop/monitors/old"] = {"name": "old", "version": 1}
    file = written(tmp_path, monitor("m"))
    asked: list[str] = []

    class Terminal:
        @staticmethod
        def isatty() -> bool:
            return True

    def no(text: str, **_: object) -> None:
        asked.append(text)
        raise apply.typer.Abort

    monkeypatch.setattr(apply.sys, "stdin", Terminal())
    monkeypatch.setattr(apply.typer, "confirm", no)
    done = command("apply", "-f", file, "--prune")
    assert done.code != 0
    assert "- monitor shop/old" in done.err
    assert asked == ["Delete them?"]
    assert set(fake.objects) == {"/v1/tenants/shop", "/v1/tenants/shop/clusters/main", "/v1/tenants/shop/monitors/old"}
    monkeypatch.setattr(apply.typer, "confirm", lambda *_, **__: True)
    assert command("apply", "-f", file, "--prune").code == 0
    assert "/v1/tenants/shop/monitors/old" not in fake.objects


def test_progress_is_for_terminals_and_many_objects(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for terminal, total, shown in ((True, 1000, True), (True, 2, False), (False, 1000, False)):
        monkeypatch.setattr(output.Console, "is_terminal", terminal)
        with output.show_progress("applying", total) as advance:
            advance()
        out, err = capsys.readouterr()
        assert out == ""
        assert ("applying" in err) is shown


def test_an_api_of_another_version_is_told(command: Command, fake: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeApi, "_document", lambda _: {"openapi": "3.1.0"})
    done = command("get", "tenants")
    assert done.code == 1
    assert "is not that of this version of Lagscale" in done.err


def test_without_dry_runs_the_fields_alone_decide(
    command: Command, fake: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from services.cli.objects.schemas import ApiSchemas

    command("apply", "-f", written(tmp_path, monitor("m")))
    monkeypatch.setattr(ApiSchemas, "supports_dry_run", lambda *_: False)
    fake.asked.clear()
    told = command("diff", "-f", written(tmp_path, monitor("m", lagThreshold=7)))
    assert (told.code, told.out.splitlines()[1]) == (1, '    policy.lagThreshold: unset -> "7"')
    assert not any("dryRun" in one for one in fake.asked)


@pytest.mark.parametrize(
    "arguments",
    [
        ["apply"], ["diff"], ["delete"], ["delete", "monitor"], ["export"], ["export", "shop", "--all"],
        ["delete", "monitor", "shop/m", "-f", "x"], ["get"], ["get", "monitr"], ["get", "monitor", "shop/"],
        ["get", "tenant", "shop/m"], ["delete", "cluster", "shop"], ["get", "monitor", "../x"],
        ["delete", "binding", "shop"], ["get", "tenants", "-o", "xml"],
    ],
)  # fmt: skip
def test_wrong_usage_exits_2_and_asks_for_nothing(command: Command, fake: FakeApi, arguments: list[str]) -> None:
    done = command(*arguments)
    assert done.code == 2
    assert [one for one in fake.asked if "openapi" not in one] == []


def test_files_that_declare_nothing_are_a_fault(command: Command, tmp_path: Path) -> None:
    done = command("apply", "-f", written(tmp_path, "# nothing\n"))
    assert (done.code, done.err.endswith("file.yaml: contains no objects\n")) == (2, True)


def test_an_export_that_cannot_be_written_is_told(command: Command, tmp_path: Path) -> None:
    done = command("export", "shop", "-o", str(tmp_path / "none" / "file.yaml"))
    assert done.code == 2
    assert "cannot be written: No such file or directory" in done.err


def test_a_secret_in_a_wrong_place_is_not_shown(command: Command, tmp_path: Path) -> None:
    tenant = "kind: Tenant\nmetadata: {name: new}\n"
    security = "{password: canary, sasl.jaas.config: canary, protocol: SSL}"
    cluster = (
        f"kind: Cluster\nmetadata: {{name: c, tenant: new}}\nspec: {{bootstrapServers: [a:1], security: {security}}}\n"
    )
    for form in ([], ["--json"]):
        told = command("diff", "-f", written(tmp_path, tenant, cluster), *form)
        assert told.code == 1
        assert "canary" not in told.out + told.err
        assert "SSL" in told.out


def test_references_to_secrets_are_exported_and_stored_secrets_are_not(command: Command, fake: FakeApi) -> None:
    shown = fake.objects["/v1/tenants/shop/clusters/main"]
    shown["secretReferences"] = {"password": {"file": "kafka/password"}}
    exported = json.loads(command("get", "cluster", "shop/main", "-o", "json").out)
    assert exported["spec"]["secrets"] == {"password": {"file": "kafka/password"}}
    assert "hasSecrets" not in exported["metadata"]
    shown["hasSecrets"] = True
    exported = json.loads(command("get", "cluster", "shop/main", "-o", "json").out)
    assert "secrets" not in exported["spec"]
    assert exported["metadata"]["hasSecrets"] is True


def test_what_is_only_tried_does_not_look_at_clusters(
    command: Command, fake: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = fake._document()
    paths = dict(document["paths"])
    path = "/v1/tenants/{tenant}/clusters/{cluster}"
    put = paths[path]["put"]
    paths[path] = paths[path] | {
        "put": put | {"parameters": [*put["parameters"], {"name": "preflight", "in": "query"}]}
    }
    monkeypatch.setattr(FakeApi, "_document", lambda _: {**document, "paths": paths})
    queries: list[str] = []

    def note(request: httpx.Request) -> Answer | None:
        if request.method == "PUT":
            queries.append(request.url.query.decode())
        return None

    fake.before = note
    cluster = "kind: Cluster\nmetadata: {name: c, tenant: shop}\nspec: {bootstrapServers: [a:1]}\n"
    assert command("apply", "-f", written(tmp_path, cluster)).code == 0
    assert queries == ["dryRun=true&preflight=false", ""]
