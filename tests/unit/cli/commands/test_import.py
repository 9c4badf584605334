"""`lagscale import`: sources, the output directory, and exit codes."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.command_line import run_main

MANIFEST = """\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  scaleTargetRef: {{name: {name}}}
  minReplicaCount: 1
  triggers:
    - type: kafka
      metadata: {{bootstrapServers: 'kafka.svc:9092', consumerGroup: {name}, topic: {name}}}
"""


def manifest(name: str, namespace: str = "shop") -> str:
    return MANIFEST.format(name=name, namespace=namespace)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str, stdin: str = "") -> int:
    monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
    return run_main(monkeypatch, "import", *arguments)


@pytest.mark.parametrize("command", ["import", "compare", "scaledobject"])
def test_the_commands_explain_themselves(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_main(monkeypatch, command, "--help") == 0
    assert f"Usage: lagscale {command}" in capsys.readouterr().out


def files(out: Path) -> list[str]:
    return sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())


def test_a_directory_is_read_with_those_below_and_other_files_are_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = tmp_path / "manifests"
    (source / "deep").mkdir(parents=True)
    (source / "a.yaml").write_text(manifest("one"))
    (source / "deep" / "b.yml").write_text(manifest("two"))
    (source / "notes.txt").write_text("kind: ScaledObject")
    out = tmp_path / "out"
    assert run(monkeypatch, "-f", str(source), "--out", str(out)) == 0
    assert files(out) == [
        "README.md",
        "batch-001/new/shop_scaledobject_one.yaml",
        "batch-001/new/shop_scaledobject_two.yaml",
        "batch-001/rollback/shop_scaledobject_one.yaml",
        "batch-001/rollback/shop_scaledobject_two.yaml",
        "register/10-clusters.yaml",
        "register/20-monitors.yaml",
        "register/30-bindings.yaml",
        "report.json",
        "report.md",
    ]
    report = json.loads((out / "report.json").read_text())
    assert [one["location"] for one in report["objects"]] == ["a.yaml:1", "deep/b.yml:1"]


def test_stdin_and_files_go_together(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(manifest("one"))
    out = tmp_path / "out"
    assert run(monkeypatch, "-f", "-", "-f", str(file), "--out", str(out), stdin=manifest("two")) == 0
    assert len(files(out / "batch-001" / "new")) == 2


def test_batches_have_the_size_that_was_asked_for_and_each_its_way_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    many = "---\n".join(manifest(f"number-{number:02}") for number in range(5))
    assert run(monkeypatch, "-f", "-", "--out", str(out), "--write-batches", "2", stdin=many) == 0
    assert [len(files(out / f"batch-00{number}" / "new")) for number in (1, 2, 3)] == [2, 2, 1]
    for batch in (1, 2, 3):
        assert files(out / f"batch-00{batch}" / "new") == files(out / f"batch-00{batch}" / "rollback")
    original = (out / "batch-002" / "rollback" / "shop_scaledobject_number-02.yaml").read_text()
    assert original == manifest("number-02")
    assert "kubectl apply -f" in (out / "README.md").read_text()


def test_what_is_broken_is_told_and_the_rest_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    text = manifest("good") + "---\n{ broken: [\n---\n" + manifest("bad").replace("topic: bad", "topic: 'a b'")
    assert run(monkeypatch, "-f", "-", "--out", str(out), stdin=text) == 1
    shown, error = capsys.readouterr()
    assert "not converted: ScaledObject shop/bad: triggers[0].metadata.topic: must be the name of a topic" in shown
    assert "unreadable: stdin:11" in shown
    assert error.startswith("lagscale: 1 object not converted, 1 document unreadable; see ")
    assert "1 object converted: 1 monitor on 1 cluster, in 1 batch." in shown
    assert files(out / "batch-001" / "new") == ["shop_scaledobject_good.yaml"]


def test_a_directory_with_something_in_it_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert run(monkeypatch, "-f", "-", "--out", str(tmp_path), stdin=manifest("one")) == 2
    assert "--out: " in capsys.readouterr().err
    assert files(tmp_path) == ["mine.txt"]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("-f", "nowhere"), "-f"),
        (("-f", "-"), "-f"),
        (("-f", "-", "--tenant", "No Name"), "--tenant"),
        (("-f", "-", "--scaler-address", "nowhere"), "--scaler-address"),
        (("-f", "-", "--mtls-auth", "Secret/x"), "--mtls-auth"),
    ],
)
def test_faults_name_the_option(
    arguments: tuple[str, ...],
    field: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, *arguments, "--out", str(tmp_path / "out"), stdin="kind: ConfigMap\n") == 2
    assert f"lagscale: {field}: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_one_tenant_for_all_is_declared_if_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    out = tmp_path / "out"
    text = manifest("orders", "eu") + "---\n" + manifest("orders", "us")
    assert run(monkeypatch, "-f", "-", "--out", str(out), "--tenant", "shop", "--with-tenants", stdin=text) == 0
    register = {
        path: list(yaml.safe_load_all((out / "register" / path).read_text())) for path in files(out / "register")
    }
    assert [one["metadata"] for one in register["00-tenants.yaml"]] == [{"name": "shop"}]
    assert [one["metadata"]["name"] for one in register["20-monitors.yaml"]] == ["eu-orders", "us-orders"]
    assert [one["spec"]["namespace"] for one in register["30-bindings.yaml"]] == ["eu", "us"]
    assert len(register["10-clusters.yaml"]) == 1


def test_an_object_that_stands_twice_is_converted_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(monkeypatch, "-f", "-", "--out", str(out), stdin=manifest("one") + "---\n" + manifest("one")) == 0
    (note,) = json.loads((out / "report.json").read_text())["notes"]
    assert note == "ScaledObject shop/one is declared in stdin:1 and in stdin:11; the last one counts"


def test_no_name_leads_out_of_the_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    out = tmp_path / "out"
    text = manifest("'../../../up'").replace("topic: '../../../up'", "topic: up")
    run(monkeypatch, "-f", "-", "--out", str(out), stdin=text)
    assert all(path.is_relative_to(out) for path in tmp_path.rglob("*") if path.is_file())
    assert files(out / "batch-001" / "new") == ["shop_scaledobject_up.yaml"]


def test_tasks_are_printed_once_with_the_number_of_objects(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "---\n".join(manifest(name).replace("kafka.svc:9092", "kafka:9092") for name in ("one", "two"))
    assert run(monkeypatch, "-f", "-", "--out", str(tmp_path / "out"), stdin=text) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("to do"))
    assert line.startswith("to do (2 objects): A host without a domain resolves only in the namespace of its Service")
