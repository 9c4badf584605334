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

from lagscale.errors import Fault

Way = tuple[str | int, ...]

_ENDINGS = (".yaml", ".yml", ".json")
_STDIN = "-"
_TAG = "tag:yaml.org,2002:"
#: Aliases repeat what they name: a few lines could mean billions of values.
_MOST_VALUES = 500_000
_DEEPEST = 40


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a file.

    Attributes:
        file: as it was named.
        value: mappings, lists, texts, numbers, true, false and null.
        lines: the way to a value -> its line, the first is 1.
    """

    file: str
    value: Any
    lines: Mapping[Way, int]

    def place(self, way: Way = ()) -> str:
        """`file:line` of a value, or of the nearest one around it that is there."""
        while way and way not in self.lines:
            way = way[:-1]
        return f"{self.file}:{self.lines[way]}"


def read(sources: Sequence[str], faults: list[Fault]) -> list[Document]:
    """The documents of files and directories (their .yaml, .yml and .json files, by name), or of standard input (`-`).

    A list, and a `List` with `items`, count as their members. Empty documents are passed over.

    Args:
        sources: as given to `-f`.
        faults: takes a fault for each file that cannot be read.
    """
    found: list[Document] = []
    for source in sources:
        for name, text in _texts(source, faults):
            found += _Reader(name, faults).documents(text)
    return found


def _texts(source: str, faults: list[Fault]) -> Iterator[tuple[str, str]]:
    if source == _STDIN:
        yield "stdin", sys.stdin.read()
        return
    path = Path(source)
    files = _files(path) if path.is_dir() else [path]
    if not files:
        faults.append(Fault(source, f"holds no file that ends in {', '.join(_ENDINGS)}"))
    for file in files:
        try:
            yield str(file), file.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            faults.append(Fault(str(file), "is not UTF-8"))
        except OSError as wrong:
            faults.append(Fault(str(file), f"cannot be read: {wrong.strerror}"))


def _files(folder: Path) -> list[Path]:
    # What is hidden is not meant: editors keep copies there, and Kubernetes the past of a mounted ConfigMap.
    return sorted(
        file
        for file in folder.rglob("*")
        if file.suffix in _ENDINGS
        and file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    )


class _Unreadable(Exception):
    """A value that no document may hold: where, and why."""

    def __init__(self, node: Node, text: str) -> None:
        super().__init__(text)
        self.line = int(node.start_mark.line) + 1


class _Reader:
    """Reads one file."""

    def __init__(self, file: str, faults: list[Fault]) -> None:
        self._file = file
        self._faults = faults
        self._yaml = YAML(typ="safe", pure=True)
        self._values = 0

    def documents(self, text: str) -> Iterator[Document]:
        try:
            for root in self._yaml.compose_all(text):
                for node in _members(root):
                    yield from self._document(node)
        except MarkedYAMLError as wrong:
            # Only what is wrong, not the piece of the file that the library would print: it may hold a secret.
            mark = wrong.problem_mark or wrong.context_mark
            where = self._file if mark is None else f"{self._file}:{mark.line + 1}"
            self._faults.append(Fault(where, f"is no YAML or JSON: {wrong.problem or wrong.context}"))
        except YAMLError:
            self._faults.append(Fault(self._file, "is no YAML or JSON: it holds a character that neither allows"))

    def _document(self, node: Node) -> Iterator[Document]:
        lines: dict[Way, int] = {}
        try:
            value = self._value(node, (), lines)
        except _Unreadable as wrong:
            self._faults.append(Fault(f"{self._file}:{wrong.line}", str(wrong)))
            return
        if value is not None:
            yield Document(self._file, value, lines)

    def _value(self, node: Node, way: Way, lines: dict[Way, int]) -> Any:
        self._values += 1
        if len(way) > _DEEPEST or self._values > _MOST_VALUES:
            raise _Unreadable(node, "is nested too deeply, or aliases make too many values of it")
        lines[way] = int(node.start_mark.line) + 1
        if isinstance(node, MappingNode):
            return self._mapping(node, way, lines)
        if isinstance(node, SequenceNode):
            return [self._value(item, (*way, number), lines) for number, item in enumerate(node.value)]
        return self._scalar(node)

    def _mapping(self, node: MappingNode, way: Way, lines: dict[Way, int]) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key, value in node.value:
            if key.tag == f"{_TAG}merge":
                # The first of several counts, and what the mapping says itself before all of them.
                for part in reversed(value.value) if isinstance(value, SequenceNode) else [value]:
                    merged |= self._merged(part, way, lines)
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                raise _Unreadable(key, "a key must be a text")
            if key.tag == f"{_TAG}merge":
                continue
            name = str(key.value)
            if name in own:
                raise _Unreadable(key, f"{name}: stands here twice")
            own[name] = self._value(value, (*way, name), lines)
            lines[(*way, name)] = int(key.start_mark.line) + 1
        return merged | own

    def _merged(self, part: Node, way: Way, lines: dict[Way, int]) -> dict[str, Any]:
        if not isinstance(part, MappingNode):
            raise _Unreadable(part, "`<<` takes a mapping, or a list of mappings")
        line = lines[way]
        found = self._value(part, way, lines)
        lines[way] = line
        return dict(found)

    def _scalar(self, node: Node) -> Any:
        kind = str(node.tag).removeprefix(_TAG)
        if kind in {"str", "timestamp"}:
            # JSON writes a character beyond the first plane as two halves, which YAML leaves apart.
            return str(node.value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if kind not in {"int", "float", "bool", "null"}:
            raise _Unreadable(node, f"has the tag {node.tag}, which means nothing here")
        value = self._yaml.constructor.construct_object(node)
        if isinstance(value, float) and not math.isfinite(value):
            raise _Unreadable(node, "must be a finite number")
        return value


def _members(root: Node) -> Sequence[Node]:
    if isinstance(root, SequenceNode):
        members: Sequence[Node] = root.value
        return members
    if isinstance(root, MappingNode):
        fields = {key.value: value for key, value in root.value if isinstance(key, ScalarNode)}
        kind, items = fields.get("kind"), fields.get("items")
        if isinstance(kind, ScalarNode) and kind.value == "List" and isinstance(items, SequenceNode):
            listed: Sequence[Node] = items.value
            return listed
    return [root]
