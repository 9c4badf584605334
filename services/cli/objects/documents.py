"""YAML and JSON files as documents of plain data with the line of each value, and their `valueFrom` references resolved."""

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
#: Aliases repeat their values: a few lines could expand to billions.
_MAX_VALUES = 500_000
_MAX_DEPTH = 40


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """One object of a file.

    Attributes:
        file: its path as given.
        value: mappings, lists, strings, numbers, true, false and null.
        lines: path of a value -> its line, counted from 1.
    """

    file: str
    value: Any
    lines: Mapping[KeyPath, int]

    def locate(self, key_path: KeyPath = ()) -> str:
        """`file:line` of a value, or of the nearest enclosing one."""
        while key_path and key_path not in self.lines:
            key_path = key_path[:-1]
        return f"{self.file}:{self.lines[key_path]}"


def read_documents(sources: Sequence[str], field_errors: list[FieldError]) -> list[SourceDocument]:
    """The documents of files, directories or standard input (`-`).

    Lists, and a `List` with `items`, are split into their members. Empty documents are skipped. `field_errors` receives
    an error for each file that cannot be read.
    """
    parsed: list[SourceDocument] = []
    for source in sources:
        for one in read_texts(source, field_errors):
            if one.text is None:
                field_errors.append(FieldError(one.path, "is not UTF-8"))
            else:
                parsed += _YamlParser(one.path, field_errors).documents(one.text)
    return parsed


@dataclass(frozen=True, slots=True)
class SourceText:
    """The text of one manifest file.

    Attributes:
        path: as given, joined with the file's name in a directory.
        name: relative to the source.
        text: None if the file is not UTF-8.
    """

    path: str
    name: str
    text: str | None


def read_texts(source: str, field_errors: list[FieldError]) -> Iterator[SourceText]:
    """The texts of a file, of a directory (its .yaml, .yml and .json files, recursive), or of standard input (`-`).

    `field_errors` receives an error for each file that cannot be read.
    """
    if source == _STDIN:
        yield SourceText("stdin", "stdin", sys.stdin.read())
        return
    path = Path(source)
    files = _list_files(path) if path.is_dir() else [path]
    if not files:
        field_errors.append(
            FieldError(source, f"no {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]} files in this directory")
        )
    for file in files:
        name = file.relative_to(path).as_posix() if path.is_dir() else file.name
        try:
            yield SourceText(str(file), name, file.read_text(encoding="utf-8-sig"))
        except UnicodeDecodeError:
            yield SourceText(str(file), name, None)
        except OSError as error:
            field_errors.append(FieldError(str(file), f"cannot be read: {error.strerror}"))


def _list_files(folder: Path) -> list[Path]:
    # Hidden files are skipped: copies of editors, and former versions of a mounted ConfigMap.
    return sorted(
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in _SUFFIXES
        and file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    )


def find_error_line(error: MarkedYAMLError) -> int | None:
    """The line of a YAML error, counted from 0. Its own text is not for people: it quotes the file, which may hold a secret."""
    mark = error.problem_mark or error.context_mark
    return None if mark is None else int(mark.line)


class _InvalidValue(Exception):
    """A value that is not allowed in a document, with its line."""

    def __init__(self, node: Node, text: str) -> None:
        super().__init__(text)
        self.line = int(node.start_mark.line) + 1


class _YamlParser:
    """Reads one file."""

    def __init__(self, file: str, field_errors: list[FieldError]) -> None:
        self._file = file
        self._field_errors = field_errors
        self._yaml = YAML(typ="safe", pure=True)
        self._values = 0

    def documents(self, text: str) -> Iterator[SourceDocument]:
        try:
            for root in self._yaml.compose_all(text):
                for node in _list_members(root):
                    yield from self._read_document(node)
        except MarkedYAMLError as error:
            line = find_error_line(error)
            location = self._file if line is None else f"{self._file}:{line + 1}"
            self._field_errors.append(FieldError(location, f"invalid YAML or JSON: {error.problem or error.context}"))
        except YAMLError:
            self._field_errors.append(
                FieldError(self._file, "invalid YAML or JSON: it contains a character that is not allowed")
            )

    def _read_document(self, node: Node) -> Iterator[SourceDocument]:
        lines: dict[KeyPath, int] = {}
        try:
            value = self._read_value(node, (), lines)
        except _InvalidValue as error:
            self._field_errors.append(FieldError(f"{self._file}:{error.line}", str(error)))
            return
        if value is not None:
            yield SourceDocument(self._file, value, lines)

    def _read_value(self, node: Node, key_path: KeyPath, lines: dict[KeyPath, int]) -> Any:
        self._values += 1
        if len(key_path) > _MAX_DEPTH or self._values > _MAX_VALUES:
            raise _InvalidValue(node, "nested too deeply, or expanded by aliases to too many values")
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
                # The first of several takes precedence, and the keys of the mapping itself over all of them.
                for part in reversed(value.value) if isinstance(value, SequenceNode) else [value]:
                    merged |= self._read_merge_key(part, key_path, lines)
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                raise _InvalidValue(key, "a key must be a string")
            if key.tag == f"{_TAG}merge":
                continue
            name = str(key.value)
            if name in own:
                raise _InvalidValue(key, f"{name}: duplicate key")
            own[name] = self._read_value(value, (*key_path, name), lines)
            lines[(*key_path, name)] = int(key.start_mark.line) + 1
        return merged | own

    def _read_merge_key(self, part: Node, key_path: KeyPath, lines: dict[KeyPath, int]) -> dict[str, Any]:
        if not isinstance(part, MappingNode):
            raise _InvalidValue(part, "`<<` expects a mapping or a list of mappings")
        line = lines[key_path]
        parsed = self._read_value(part, key_path, lines)
        lines[key_path] = line
        return dict(parsed)

    def _read_scalar(self, node: Node) -> Any:
        kind = str(node.tag).removeprefix(_TAG)
        if kind in {"str", "timestamp"}:
            # JSON writes a character beyond the first plane as two surrogates, which YAML does not join.
            return str(node.value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if kind not in {"int", "float", "bool", "null"}:
            raise _InvalidValue(node, f"unsupported tag {node.tag}")
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
_MAX_FILE_BYTES = 1_048_576
_REFERENCE_FORM = "expected {env: NAME} or {file: PATH}"


def resolve_spec(document: SourceDocument, environ: Mapping[str, str], field_errors: list[FieldError]) -> Any:
    """The document's spec with every `valueFrom` replaced by its value; empty if there is none.

    A value comes from the command's environment, or from a file next to the manifest. Variables of Lagscale's settings
    may not be referenced. `field_errors` receives an error for each unresolved reference, with its location and field.
    """

    def resolve(key_path: KeyPath, value: Any) -> Any:
        if isinstance(value, list):
            return [resolve((*key_path, number), item) for number, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        if _KEY not in value:
            return {name: resolve((*key_path, name), item) for name, item in value.items()}
        try:
            return _read_reference(document, value, environ)
        except ValueError as error:
            field = ".".join(map(str, key_path))
            field_errors.append(FieldError(f"{document.locate((*key_path, _KEY))}: {field}.{_KEY}", str(error)))
            # A placeholder, so that the field is not reported twice.
            return "unresolved"

    spec = document.value.get("spec") if isinstance(document.value, dict) else None
    return {} if spec is None else resolve(("spec",), spec)


def _read_reference(document: SourceDocument, value: dict[str, Any], environ: Mapping[str, str]) -> str:
    reference = value[_KEY]
    if len(value) != 1 or not isinstance(reference, dict) or len(reference) != 1:
        raise ValueError(_REFERENCE_FORM)
    ((kind, name),) = reference.items()
    if kind not in {"env", "file"} or not isinstance(name, str) or not name:
        raise ValueError(_REFERENCE_FORM)
    if kind == "file":
        return _read_file(document.file, name)
    if name.upper().startswith(PREFIX):
        # A manifest of somebody else must not copy the command's own key into an object.
        raise ValueError(f"env {name}: is a setting of the command; use a variable with another prefix")
    if not environ.get(name):
        raise ValueError(f"env {name}: is not set or empty; set it in the environment of `lagscale`")
    return environ[name]


def _read_file(manifest: str, name: str) -> str:
    path = Path(manifest).parent / name
    try:
        if not path.is_file():
            raise ValueError(f"file {name}: not found; paths are relative to the manifest's directory")
        with path.open("rb") as opened:
            content = opened.read(_MAX_FILE_BYTES + 1)
        text = content.decode("utf-8")
    except OSError as error:
        raise ValueError(f"file {name}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ValueError(f"file {name}: is not UTF-8") from None
    if len(content) > _MAX_FILE_BYTES or not text.strip():
        raise ValueError(f"file {name}: must have 1 to {_MAX_FILE_BYTES} bytes")
    # Editors and `echo` end a file with a line break that is not part of a password.
    return text.removesuffix("\n").removesuffix("\r")


def walk_leaves(value: Any, key_path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Every value that is not a mapping, with its path."""
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from walk_leaves(item, (*key_path, name))
    else:
        yield key_path, value
