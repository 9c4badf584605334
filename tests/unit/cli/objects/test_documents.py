"""Files as documents: their values with lines, and errors that name the line."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from lagscale.errors import FieldError
from services.cli.objects.documents import SourceDocument, read_documents


def documents(tmp_path: Path, text: str, name: str = "one.yaml") -> tuple[list[SourceDocument], list[str]]:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    field_errors: list[FieldError] = []
    found = read_documents([str(file)], field_errors)
    return found, [str(field_error).removeprefix(f"{file}") for field_error in field_errors]


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\n---\na: 2\n",
        "- a: 1\n- a: 2\n",
        "kind: List\nitems:\n  - a: 1\n  - a: 2\n",
        "# nothing\n---\n---\na: 1\n...\n---\n- a: 2\n",
        '[{"a": 1}, {"a": 2}]',
        '{"kind": "List",\t"items": [\n\t{"a": 1},\n\t{"a": 2}]}',
    ],
)
def test_several_objects_of_a_file_are_found(tmp_path: Path, text: str) -> None:
    found, field_errors = documents(tmp_path, text)
    assert ([one.value for one in found], field_errors) == ([{"a": 1}, {"a": 2}], [])


def test_values_keep_their_lines(tmp_path: Path) -> None:
    ((document,), _) = documents(tmp_path, "a:\n  - 1\n  - b: 2\n    c: {d: 3}\n")
    assert document.locate() == f"{tmp_path}/one.yaml:1"
    lines = {way: document.locate(way).rpartition(":")[2] for way in [("a", 0), ("a", 1, "b"), ("a", 1, "c", "d")]}
    assert list(lines.values()) == ["2", "3", "4"]
    assert document.locate(("a", 1, "none", "deeper")).endswith(":3")


def test_scalars_are_what_json_has_and_words_stay_words(tmp_path: Path) -> None:
    ((document,), field_errors) = documents(
        tmp_path, 'yes: no\non: off\nday: 2030-01-01\nclock: 12:30\nnumber: 010\nnone: ~\nface: "\\ud83d\\ude00"\n'
    )
    assert field_errors == []
    assert document.value == {
        "yes": "no", "on": "off", "day": "2030-01-01", "clock": "12:30", "number": 10, "none": None, "face": "😀",
    }  # fmt: skip


def test_anchors_and_merges_are_followed_and_what_is_said_last_counts(tmp_path: Path) -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc:\n  z: 3\n  <<: [*a, *b]\nd: *a\n"
    ((document,), field_errors) = documents(tmp_path, text)
    assert field_errors == []
    assert document.value["c"] == {"x": 1, "y": 1, "z": 3}
    assert document.value["d"] == {"x": 1, "y": 1}
    assert document.locate(("c", "z")).endswith(":4")
    assert document.locate(("c", "y")).endswith(":1")
    ((listed,), _) = documents(tmp_path, "a: &a {x: 1}\nl:\n  - <<: *a\n")
    assert listed.locate(("l", 0)).endswith(":3")


BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 35))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [1", ":1: invalid YAML or JSON: expected ',' or ']', but got '<stream end>'"),
        ("a: 1\n\tb: 2\n", ":2: invalid YAML or JSON: "),
        ("a: 1\nb: 2\na: 3\n", ":3: a: duplicate key"),
        ("a: !secret canary\n", ":1: unsupported tag !secret"),
        ("a: .inf\n", ":1: must be a finite number"),
        ("{[1]: 2}\n", ":1: a key must be a string"),
        ("a: *none\n", ":1: invalid YAML or JSON: "),
        ("a: &a [*a]\n", ":1: nested too deeply, or expanded by aliases to too many values"),
        (BOMB, "nested too deeply, or expanded by aliases to too many values"),
        ("a: \x07\n", ": invalid YAML or JSON: it contains a character"),
        ("<<: 1\n", ":1: `<<` expects a mapping or a list of mappings"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line_and_without_its_text(tmp_path: Path, text: str, told: str) -> None:
    found, field_errors = documents(tmp_path, text)
    assert found == []
    assert len(field_errors) == 1
    assert told in field_errors[0]
    assert "canary" not in field_errors[0]


def test_a_fault_of_one_document_leaves_the_others(tmp_path: Path) -> None:
    found, field_errors = documents(tmp_path, "a: 1\n---\na: .nan\n---\na: 2\n")
    assert [one.value for one in found] == [{"a": 1}, {"a": 2}]
    assert field_errors == [":3: must be a finite number"]


def test_a_directory_is_read_by_name_without_what_is_hidden(tmp_path: Path) -> None:
    for name in ("b.yaml", "a/c.json", "a/d.yml", ".hidden/e.yaml", "..data/f.yaml", ".g.yaml", "h.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f'{{"name": "{name}"}}')
    field_errors: list[FieldError] = []
    assert [one.value["name"] for one in read_documents([str(tmp_path)], field_errors)] == [
        "a/c.json",
        "a/d.yml",
        "b.yaml",
    ]
    assert field_errors == []


def test_files_that_are_not_there_or_not_readable_are_all_told(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9")
    field_errors: list[FieldError] = []
    sources = [str(tmp_path / name) for name in ("none.yaml", "empty", "latin.yaml")]
    assert read_documents(sources, field_errors) == []
    assert [field_error.text for field_error in field_errors] == [
        "cannot be read: No such file or directory", "no .yaml, .yml or .json files in this directory", "is not UTF-8",
    ]  # fmt: skip
    assert [field_error.field for field_error in field_errors] == sources


def test_standard_input_is_a_file_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("a: 1\n---\na: 2\n"))
    field_errors: list[FieldError] = []
    found = read_documents(["-"], field_errors)
    assert [one.locate() for one in found] == ["stdin:1", "stdin:3"]
