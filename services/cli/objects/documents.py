"""YAML and JSON files -> documents of plain data that remember the line of each value."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from lagscale.errors import FieldError
from lagscale.settings import PREFIX

KeyPath = tuple[str | int, ...]

_SUFFIXES = (".yaml", ".yml", ".json")
_STDIN = "-"
_TAG = "tag:yaml.org,2002:"
#: Aliases repeat what they name: a few lines could mean billions of values.
_MAX_VALUES = 500_000
_MAX_DEPTH = 40


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """One object of a file.

    Attributes:
        file: as it was named.
        value: mappings, lists, texts, numbers, true, false and null.
        lines: the way to a value -> its line, the first is 1.
    """

    file: str
    value: Any
    lines: Mapping[KeyPath, int]

    def locate(self, key_path: KeyPath = ()) -> str:
        """`file:line` of a value, or of the nearest one around it that is there."""
        while key_path and key_path not in self.lines:
            key_path = key_path[:-1]
        return f"{self.file}:{self.lines[key_path]}"


def read_documents(sources: Sequence[str], field_errors: list[FieldError]) -> list[SourceDocument]:
    """The documents of files and directories (their .yaml, .yml and .json files, by name), or of standard input (`-`).

    A list, and a `List` with `items`, count as their members. Empty documents are passed over.

    Args:
        sources: as given to `-f`.
        field_errors: takes a fault for each file that cannot be read.
    """
    parsed: list[SourceDocument] = []
    for source in sources:
        for name, text in _read_texts(source, field_errors):
            parsed += _YamlParser(name, field_errors).documents(text)
    return parsed


def _read_texts(source: str, field_errors: list[FieldError]) -> Iterator[tuple[str, str]]:
    if source == _STDIN:
        yield "stdin", sys.stdin.read()
        return
    path = Path(source)
    files = _list_files(path) if path.is_dir() else [path]
    if not files:
        field_errors.append(FieldError(source, f"holds no file that ends in {', '.join(_SUFFIXES)}"))
    for file in files:
        try:
            yield str(file), file.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            field_errors.append(FieldError(str(file), "is not UTF-8"))
        except OSError as wrong:
            field_errors.append(FieldError(str(file), f"cannot be read: {wrong.strerror}"))


def _list_files(folder: Path) -> list[Path]:
    # What is hidden is not meant: editors keep copies there, and Kubernetes the past of a mounted ConfigMap.
    return sorted(
        file
        for file in folder.rglob("*")
        if file.suffix in _SUFFIXES
        and file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    )


class _InvalidValue(Exception):
    """A value that no document may hold: where, and why."""

    def __init__(self, node: Node, text: str) -> None:
        super().__init__(text)
        self.line = int(node.start_mark.line) + 1


class _YamlParser:
    """Reads one file."""

    def __init__(self, file: str, field_errors: list[FieldError]) -> None:
        self._file = file
        self._faults = field_errors
        self._yaml = YAML(typ="safe", pure=True)
        self._values = 0

    def documents(self, text: str) -> Iterator[SourceDocument]:
        try:
            for root in self._yaml.compose_all(text):
                for node in _list_members(root):
                    yield from self._read_document(node)
        except MarkedYAMLError as wrong:
            # Only what is wrong, not the piece of the file that the library would print: it may hold a secret.
            mark = wrong.problem_mark or wrong.context_mark
            where = self._file if mark is None else f"{self._file}:{mark.line + 1}"
            self._faults.append(FieldError(where, f"is no YAML or JSON: {wrong.problem or wrong.context}"))
        except YAMLError:
            self._faults.append(FieldError(self._file, "is no YAML or JSON: it holds a character that neither allows"))

    def _read_document(self, node: Node) -> Iterator[SourceDocument]:
        lines: dict[KeyPath, int] = {}
        try:
            value = self._read_value(node, (), lines)
        except _InvalidValue as wrong:
            self._faults.append(FieldError(f"{self._file}:{wrong.line}", str(wrong)))
            return
        if value is not None:
            yield SourceDocument(self._file, value, lines)

    def _read_value(self, node: Node, key_path: KeyPath, lines: dict[KeyPath, int]) -> Any:
        self._values += 1
        if len(key_path) > _MAX_DEPTH or self._values > _MAX_VALUES:
            raise _InvalidValue(node, "is nested too deeply, or aliases make too many values of it")
        lines[key_path] = int(node.start_mark.line) + 1
        if isinstance(node, MappingNode):
            return self._read_mapping(node, key_path, lines)
        if isinstance(node, SequenceNode):
            return [self._read_value(item, (*key_path, number), lines) for number, item in enumerate(node.value)]
        return self._read_scalar(node)

    def _read_mapping(self, node: MappingNode, key_path: KeyPath, lines: dict[KeyPath, int]) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key, value in node.value:
            if key.tag == f"{_TAG}merge":
                # The first of several counts, and what the mapping says itself before all of them.
                for part in reversed(value.value) if isinstance(value, SequenceNode) else [value]:
                    merged |= self._read_merge_key(part, key_path, lines)
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                raise _InvalidValue(key, "a key must be a text")
            if key.tag == f"{_TAG}merge":
                continue
            name = str(key.value)
            if name in own:
                raise _InvalidValue(key, f"{name}: stands here twice")
            own[name] = self._read_value(value, (*key_path, name), lines)
            lines[(*key_path, name)] = int(key.start_mark.line) + 1
        return merged | own

    def _read_merge_key(self, part: Node, key_path: KeyPath, lines: dict[KeyPath, int]) -> dict[str, Any]:
        if not isinstance(part, MappingNode):
            raise _InvalidValue(part, "`<<` takes a mapping, or a list of mappings")
        line = lines[key_path]
        parsed = self._read_value(part, key_path, lines)
        lines[key_path] = line
        return dict(parsed)

    def _read_scalar(self, node: Node) -> Any:
        kind = str(node.tag).removeprefix(_TAG)
        if kind in {"str", "timestamp"}:
            # JSON writes a character beyond the first plane as two halves, which YAML leaves apart.
            return str(node.value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if kind not in {"int", "float", "bool", "null"}:
            raise _InvalidValue(node, f"has the tag {node.tag}, which means nothing here")
        value = self._yaml.constructor.construct_object(node)
        if isinstance(value, float) and not math.isfinite(value):
            raise _InvalidValue(node, "must be a finite number")
        return value


def _list_members(root: Node) -> Sequence[Node]:
    if isinstance(root, SequenceNode):
        members: Sequence[Node] = root.value
        return members
    if isinstance(root, MappingNode):
        fields = {key.value: value for key, value in root.value if isinstance(key, ScalarNode)}
        kind, items = fields.get("kind"), fields.get("items")
        if isinstance(kind, ScalarNode) and kind.value == "List" and isinstance(items, SequenceNode):
            items_node: Sequence[Node] = items.value
            return items_node
    return [root]


_KEY = "valueFrom"
_LONGEST = 1_048_576
_FORM = "must read like {env: NAME} or {file: path}"


@dataclass(frozen=True, slots=True)
class ValueFromResolver:
    """Resolves them.

    Attributes:
        environ: the variables that may be meant; none of Lagscale's own is.
        field_errors: takes a fault for each reference that leads nowhere, by the place and the field.
    """

    environ: Mapping[str, str]
    field_errors: list[FieldError]

    def resolve_spec(self, document: SourceDocument) -> Any:
        """The document's spec with every reference in it replaced by what it leads to; a left out one is empty."""
        spec = document.value.get("spec") if isinstance(document.value, dict) else None
        return {} if spec is None else self._resolve(document, ("spec",), spec)

    def _resolve(self, document: SourceDocument, key_path: KeyPath, value: Any) -> Any:
        if isinstance(value, list):
            return [self._resolve(document, (*key_path, number), item) for number, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        if _KEY not in value:
            return {name: self._resolve(document, (*key_path, name), item) for name, item in value.items()}
        try:
            return self._read_reference(document, value)
        except ValueError as wrong:
            field = ".".join(map(str, key_path))
            self.field_errors.append(FieldError(f"{document.locate((*key_path, _KEY))}: {field}.{_KEY}", str(wrong)))
            # In its place, so that no other fault is told of this field.
            return "unresolved"

    def _read_reference(self, document: SourceDocument, value: dict[str, Any]) -> str:
        reference = value[_KEY]
        if len(value) != 1 or not isinstance(reference, dict) or len(reference) != 1:
            raise ValueError(_FORM)
        ((kind, name),) = reference.items()
        if kind not in {"env", "file"} or not isinstance(name, str) or not name:
            raise ValueError(_FORM)
        return self._read_variable(name) if kind == "env" else _read_file(document.file, name)

    def _read_variable(self, name: str) -> str:
        if name.upper().startswith(PREFIX):
            # A file that somebody else wrote must not carry the command's own key into an object.
            raise ValueError(f"env {name}: is a setting of the command; name a variable of another prefix")
        if not self.environ.get(name):
            raise ValueError(f"env {name}: is not set, or empty; set it where `lagscale` runs")
        return self.environ[name]


def _read_file(manifest: str, name: str) -> str:
    path = Path(manifest).parent / name
    try:
        if not path.is_file():
            raise ValueError(f"file {name}: is no file; paths count from the manifest's directory")
        with path.open("rb") as opened:
            content = opened.read(_LONGEST + 1)
        text = content.decode("utf-8")
    except OSError as wrong:
        raise ValueError(f"file {name}: cannot be read: {wrong.strerror}") from wrong
    except UnicodeDecodeError:
        raise ValueError(f"file {name}: is not UTF-8") from None
    if len(content) > _LONGEST or not text.strip():
        raise ValueError(f"file {name}: must hold 1 to {_LONGEST} bytes")
    # Editors and `echo` end a file with a line break that is no part of a password.
    return text.removesuffix("\n").removesuffix("\r")


def walk_leaves(value: Any, key_path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Every value that is no mapping, with its way."""
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from walk_leaves(item, (*key_path, name))
    else:
        yield key_path, value
