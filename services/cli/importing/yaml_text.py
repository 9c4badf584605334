"""Reads manifests: each object with its place, its comments and its exact text; what cannot be read is told.

A file with several documents is read document by document, so that a broken one takes no other with it.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, TextIO

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import CommentMark, MarkedYAMLError, YAMLError
from ruamel.yaml.tokens import CommentToken

from lagscale.errors import FieldError, InvalidInput

_SUFFIXES = {".yaml", ".yml", ".json"}
_SEPARATOR = re.compile(r"^(?:---(?=\s|$)|\.\.\.\s*$).*$", re.MULTILINE)
#: A document of a Helm chart that nobody rendered.
_TEMPLATE = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_NOT_RENDERED = "is a template that was not rendered; run `helm template` first, or take `kubectl get -o yaml`"
_WIDTH = 4096


@dataclass(frozen=True, slots=True)
class KubernetesDocument:
    """One object of Kubernetes.

    Attributes:
        where: file and line, as in `orders.yaml:12`.
        node: with comments; its own, so it may be changed.
        text: exactly as written; None for an item of a list, which has no text of its own.
    """

    where: str
    node: CommentedMap
    text: str | None


@dataclass(frozen=True, slots=True)
class UnreadableDocument:
    """A document that is no YAML, and why."""

    where: str
    why: str


ParsedDocument = KubernetesDocument | UnreadableDocument


def read_sources(sources: Sequence[str], stdin: TextIO) -> list[ParsedDocument]:
    """Every document of files, of directories (with those below), or of stdin (`-`).

    Raises:
        InvalidInput: a source is not there, or holds no manifest.
    """
    field_errors: list[FieldError] = []
    parsed: list[ParsedDocument] = []
    for source in sources:
        if source == "-":
            parsed += parse_documents(stdin.read(), "stdin")
            continue
        path = Path(source)
        if path.is_dir():
            files = sorted(one for one in path.rglob("*") if one.suffix.lower() in _SUFFIXES and one.is_file())
            if not files:
                field_errors.append(FieldError("-f", f"{source} holds no file that ends in .yaml, .yml or .json"))
            for file in files:
                parsed += _read_file(file, file.relative_to(path).as_posix(), field_errors)
        elif path.is_file():
            parsed += _read_file(path, path.name, field_errors)
        else:
            field_errors.append(FieldError("-f", f"{source} is not there; give a file, a directory, or - for stdin"))
    if field_errors:
        raise InvalidInput(field_errors)
    return parsed


def _read_file(path: Path, name: str, field_errors: list[FieldError]) -> list[ParsedDocument]:
    try:
        return list(parse_documents(path.read_text(encoding="utf-8-sig"), name))
    except UnicodeDecodeError:
        return [UnreadableDocument(f"{name}:1", "is no UTF-8 text")]
    except OSError as wrong:
        field_errors.append(FieldError("-f", f"{name} cannot be read: {wrong.strerror}"))
        return []


def parse_documents(text: str, name: str) -> Iterator[ParsedDocument]:
    """The objects of a text; a `List` is taken apart. Empty documents are passed over."""
    for line, part in _split_text(text.replace("\r\n", "\n")):
        where = f"{name}:{line}"
        try:
            node = _yaml().load(part)
            is_template = _is_template(node)
        except (YAMLError, ValueError, RecursionError) as wrong:
            yield UnreadableDocument(where, _explain_error(wrong, part, line))
            continue
        if node is None:
            continue
        if is_template:
            yield UnreadableDocument(where, _NOT_RENDERED)
            continue
        if not isinstance(node, CommentedMap):
            yield UnreadableDocument(where, "is no object: a manifest begins with apiVersion and kind")
            continue
        items = node.get("items")
        if str(node.get("kind", "")).endswith("List") and isinstance(items, CommentedSeq):
            yield from _split_list(items, name, line)
        else:
            yield KubernetesDocument(where, node, part)


def _split_list(items: CommentedSeq, name: str, line: int) -> Iterator[ParsedDocument]:
    for number, item in enumerate(items):
        where = f"{name}:{line + items.lc.item(number)[0]}" if items.lc.data else f"{name}:{line}"
        if isinstance(item, CommentedMap):
            # Of its own: two items may share a part by an anchor.
            yield KubernetesDocument(where, copy.deepcopy(item), None)
        else:
            yield UnreadableDocument(where, f"item {number} of the list is no object")


def _split_text(text: str) -> Iterator[tuple[int, str]]:
    """First line, counted from 1, and text of each document."""
    begin = 0
    for separator in [*_SEPARATOR.finditer(text), None]:
        end = len(text) if separator is None else separator.start()
        part = text[begin:end].strip("\n")
        if part.strip():
            blank = text[begin:end]
            skipped = len(blank) - len(blank.lstrip("\n"))
            yield text.count("\n", 0, begin + skipped) + 1, part + "\n"
        begin = end if separator is None else separator.end()


def _explain_error(wrong: Exception, part: str, line: int) -> str:
    if _TEMPLATE.search(part):
        return _NOT_RENDERED
    if isinstance(wrong, RecursionError):
        return "is no valid manifest: a part of it holds itself, or too many others in one another"
    if isinstance(wrong, MarkedYAMLError):
        mark = wrong.problem_mark or wrong.context_mark
        # The mark's own snippet is left out: it may be a line with a password.
        at = f" in line {line + mark.line}" if mark is not None else ""
        if "duplicate key" in str(wrong.problem):
            return f"is no valid YAML{at}: a key stands there twice"
        problem = re.sub(r'".*"|`.*`', "a key or value", str(wrong.problem or wrong.context or "cannot be parsed"))
        return f"is no valid YAML{at}: {problem.splitlines()[0]}"
    return "is no valid YAML"


def _is_template(node: Any) -> bool:
    """Whether braces of a template were read as maps, one of them as the key of another."""
    if isinstance(node, Mapping):
        return any(isinstance(key, Mapping) or _is_template(value) for key, value in node.items())
    return isinstance(node, list) and any(_is_template(value) for value in node)


def _yaml() -> YAML:
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = _WIDTH
    return yaml


def dump_node(node: Any) -> str:
    """A node as text, with its comments, in the indentation that it came in."""
    yaml = _yaml()
    offset = _dash_offset(node)
    yaml.indent(mapping=2, sequence=2 + offset, offset=offset)
    out = StringIO()
    yaml.dump(node, out)
    return out.getvalue()


def _dash_offset(node: Any) -> int:
    """By how many columns dashes stand to the right of their key: 2 or 0, as the first sequence has it."""
    for parent, key, child in _pairs(node):
        if isinstance(child, CommentedSeq) and len(child) and not child.fa.flow_style() and child.lc.data:
            try:
                return 2 if child.lc.item(0)[1] - 2 > parent.lc.key(key)[1] else 0
            except (KeyError, TypeError, AttributeError):
                continue
    return 0


def _pairs(node: Any) -> Iterator[tuple[CommentedMap, Any, Any]]:
    if isinstance(node, CommentedMap):
        for key, child in node.items():
            yield node, key, child
            yield from _pairs(child)
    elif isinstance(node, CommentedSeq):
        for child in node:
            yield from _pairs(child)


def to_plain(node: Any) -> Any:
    """A node without comments, anchors and quotes: dicts, lists, and scalars."""
    if isinstance(node, Mapping):
        return {str(key): to_plain(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [to_plain(value) for value in node]
    if isinstance(node, bool) or node is None:
        return node
    if isinstance(node, str):
        return str(node)
    if isinstance(node, int):
        return int(node)
    return float(node) if isinstance(node, float) else node


#: Of an entry's four places in ruamel.yaml: comments behind the key, and behind the value with all lines that follow.
_BEFORE, _BEHIND, _BELOW = 1, 2, 3


def collect_comments(node: Any, path: str = "") -> tuple[list[str], list[str]]:
    """The comments inside a node without `#`, in order, and the lines below its last value as they are.

    A comment beside a value is told with the value's key, since that goes. The lines below the last value belong to
    what comes next, so they keep their columns.
    """
    inside: list[str] = []
    last: list[str] = []
    for key, child in _list_children(node):
        inside += strip_markers(last)
        last = []
        name = f"{path}.{key}" if path else str(key)
        slots = node.ca.items.get(key) or []
        inside += _read_lines(slots[_BEFORE]) if len(slots) > _BEFORE else []
        inline, following = _split_token(slots[0] if isinstance(node, CommentedSeq) and slots else None)
        if isinstance(node, CommentedMap) and len(slots) > _BEHIND:
            inline, following = _split_token(slots[_BEHIND])
        if inline:
            inside.append(f"{name}: {inline}")
        if len(slots) > _BELOW:
            inside += _read_lines(slots[_BELOW])
        found, after = collect_comments(child, name)
        if isinstance(child, CommentedMap | CommentedSeq):
            inside += [*strip_markers(following), *found]
            last = after
        else:
            last = following
    own = getattr(node, "ca", None)
    if own is not None and own.comment and len(own.comment) > 1 and own.comment[1]:
        # The first place is the comment beside the node's own key, which the map around it holds too.
        inside = [*_read_lines(own.comment[1]), *inside]
    return inside, last


def read_value_comments(node: Any, key: Any) -> tuple[str, list[str]]:
    """What stands beside a scalar value, without `#`, and the lines below it as they are."""
    slots = node.ca.items.get(key) or []
    slot = _value_slot(node)
    return _split_token(slots[slot]) if len(slots) > slot else ("", [])


def read_key_comments(node: CommentedMap, key: Any) -> list[str]:
    """The lines that were put before a key, without `#`."""
    slots = node.ca.items.get(key) or []
    return _read_lines(slots[_BEFORE]) if len(slots) > _BEFORE and slots[_BEFORE] else []


def _value_slot(node: Any) -> int:
    """Where comments behind a value are kept: of a sequence first, of a map third."""
    return 0 if isinstance(node, CommentedSeq) else _BEHIND


def insert_before(node: CommentedMap, key: Any, lines: list[str], column: int) -> None:
    """Put lines of comments before a key."""
    if lines:
        node.yaml_set_comment_before_after_key(key, before="\n".join(lines), indent=column)


def insert_below(node: Any, key: Any, inline: str, lines: list[str]) -> None:
    """Put a comment beside a value, and lines below it as they are."""
    if not inline and not lines:
        node.ca.items.pop(key, None)
        return
    text = f"# {inline}\n" if inline else "\n"
    text += "".join(f"{line}\n" for line in lines)
    slots = node.ca.items.setdefault(key, [None, None, None, None])
    slots[_value_slot(node)] = CommentToken(text, CommentMark(0), None)


def strip_markers(lines: list[str]) -> list[str]:
    """Lines of comments without columns and `#`; empty ones go."""
    return [_strip_marker(line) for line in lines if line.strip()]


def as_comment_lines(lines: list[str], column: int) -> list[str]:
    """Texts as lines of comments at a column."""
    return [f"{' ' * column}# {line}" for line in lines if line]


def _list_children(node: Any) -> list[tuple[Any, Any]]:
    if isinstance(node, CommentedMap):
        return list(node.items())
    return list(enumerate(node)) if isinstance(node, CommentedSeq) else []


def _split_token(token: Any) -> tuple[str, list[str]]:
    """A token's text: beside the value without `#`, and the lines below as they are."""
    if isinstance(token, list):
        return "", [line for one in token for line in str(one.value).rstrip("\n").split("\n")]
    if token is None:
        return "", []
    inline, _, rest = str(token.value).partition("\n")
    return _strip_marker(inline), rest.split("\n")[:-1] if rest else []


def _read_lines(slot: Any) -> list[str]:
    tokens = slot if isinstance(slot, list) else [slot]
    return [
        _strip_marker(line)
        for token in tokens
        if token is not None
        for line in str(token.value).rstrip("\n").split("\n")
        if line.strip()
    ]


def _strip_marker(line: str) -> str:
    text = line.strip()
    return text[1:].removeprefix(" ") if text.startswith("#") else text
