"""Kubernetes manifests with their comments and exact text: read, changed and written again.

A file with several documents is read document by document, so that an invalid one does not affect the others.
`objects/documents.py` reads manifests of Lagscale: plain data with the line of each value, and no comments.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import CommentMark, MarkedYAMLError, YAMLError
from ruamel.yaml.tokens import CommentToken

from lagscale.errors import FieldError, InvalidInput
from services.cli.objects.documents import find_error_line, read_texts

_SEPARATOR = re.compile(r"^(?:---(?=\s|$)|\.\.\.\s*$).*$", re.MULTILINE)
#: Part of a Helm chart that is not rendered.
_TEMPLATE = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_NOT_RENDERED = "template not rendered; run `helm template` first, or use the output of `kubectl get -o yaml`"
_WIDTH = 4096


@dataclass(frozen=True, slots=True)
class KubernetesDocument:
    """One Kubernetes object.

    Attributes:
        location: file and line, as in `orders.yaml:12`.
        node: with comments; not shared, so it may be changed.
        text: exactly as written; None for an item of a list, which has no text of its own.
    """

    location: str
    node: CommentedMap
    text: str | None


@dataclass(frozen=True, slots=True)
class UnreadableDocument:
    """A document that is not a valid manifest, and the reason."""

    location: str
    reason: str


ParsedDocument = KubernetesDocument | UnreadableDocument


def read_sources(sources: Sequence[str]) -> list[ParsedDocument]:
    """All documents of files, directories or standard input (`-`).

    Raises:
        InvalidInput: a source cannot be read, or contains no manifests.
    """
    field_errors: list[FieldError] = []
    parsed: list[ParsedDocument] = []
    for source in sources:
        for one in read_texts(source, field_errors):
            if one.text is None:
                parsed.append(UnreadableDocument(f"{one.name}:1", "is not UTF-8"))
            else:
                parsed += parse_documents(one.text, one.name)
    if field_errors:
        raise InvalidInput([FieldError("-f", str(one)) for one in field_errors])
    return parsed


def parse_documents(text: str, name: str) -> Iterator[ParsedDocument]:
    """The objects of a text; a `List` is split into its items. Empty documents are skipped."""
    for line, part in _split_text(text.replace("\r\n", "\n")):
        location = f"{name}:{line}"
        try:
            node = _yaml().load(part)
            is_template = _is_template(node)
        except (YAMLError, ValueError, RecursionError) as error:
            yield UnreadableDocument(location, _explain_error(error, part, line))
            continue
        if node is None:
            continue
        if is_template:
            yield UnreadableDocument(location, _NOT_RENDERED)
            continue
        if not isinstance(node, CommentedMap):
            yield UnreadableDocument(location, "not a manifest: apiVersion and kind are required")
            continue
        items = node.get("items")
        if str(node.get("kind", "")).endswith("List") and isinstance(items, CommentedSeq):
            yield from _split_list(items, name, line)
        else:
            yield KubernetesDocument(location, node, part)


def _split_list(items: CommentedSeq, name: str, line: int) -> Iterator[ParsedDocument]:
    for number, item in enumerate(items):
        location = f"{name}:{line + items.lc.item(number)[0]}" if items.lc.data else f"{name}:{line}"
        if isinstance(item, CommentedMap):
            # A copy, because items may share parts by anchors.
            yield KubernetesDocument(location, copy.deepcopy(item), None)
        else:
            yield UnreadableDocument(location, f"item {number} of the list is not a mapping")


def _split_text(text: str) -> Iterator[tuple[int, str]]:
    """First line (counted from 1) and text of each document."""
    begin = 0
    for separator in [*_SEPARATOR.finditer(text), None]:
        end = len(text) if separator is None else separator.start()
        part = text[begin:end].strip("\n")
        if part.strip():
            blank = text[begin:end]
            skipped = len(blank) - len(blank.lstrip("\n"))
            yield text.count("\n", 0, begin + skipped) + 1, part + "\n"
        begin = end if separator is None else separator.end()


def _explain_error(error: Exception, part: str, line: int) -> str:
    if _TEMPLATE.search(part):
        return _NOT_RENDERED
    if isinstance(error, RecursionError):
        return "invalid manifest: recursive or nested too deeply"
    if isinstance(error, MarkedYAMLError):
        error_line = find_error_line(error)
        at = f" in line {line + error_line}" if error_line is not None else ""
        if "duplicate key" in str(error.problem):
            return f"invalid YAML{at}: duplicate key"
        problem = re.sub(r'".*"|`.*`', "a key or value", str(error.problem or error.context or "cannot be parsed"))
        return f"invalid YAML{at}: {problem.splitlines()[0]}"
    return "invalid YAML"


def _is_template(node: Any) -> bool:
    """Whether braces of a template were parsed as mappings, one as the key of another."""
    if isinstance(node, Mapping):
        return any(isinstance(key, Mapping) or _is_template(value) for key, value in node.items())
    return isinstance(node, list) and any(_is_template(value) for value in node)


def _yaml() -> YAML:
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = _WIDTH
    return yaml


def dump_node(node: Any) -> str:
    """A node as text, with its comments, in its original indentation."""
    yaml = _yaml()
    offset = _dash_offset(node)
    yaml.indent(mapping=2, sequence=2 + offset, offset=offset)
    out = StringIO()
    yaml.dump(node, out)
    return out.getvalue()


def _dash_offset(node: Any) -> int:
    """Indentation of dashes relative to their key: 2 or 0, as in the first sequence."""
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
    """A node without comments, anchors and quotes: dicts, lists and scalars."""
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


#: Slots of an entry's comments in ruamel.yaml: before the key, after the value with all following lines, below.
_BEFORE, _AFTER, _BELOW = 1, 2, 3


def collect_comments(node: Any, path: str = "") -> tuple[list[str], list[str]]:
    """The comments inside a node without `#`, in order, and the lines below its last value unchanged.

    A comment after a value gets the key as a prefix, because the key is removed. The lines below the last value belong
    to the next key, so they keep their columns.
    """
    inside: list[str] = []
    last: list[str] = []
    for key, child in _list_children(node):
        inside += strip_markers(last)
        last = []
        name = f"{path}.{key}" if path else str(key)
        slots = node.ca.items.get(key) or []
        inside += read_key_comments(node, key)
        inline, following = read_value_comments(node, key)
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
        # The first slot is the comment after the node's own key, which its parent has too.
        inside = [*_read_lines(own.comment[1]), *inside]
    return inside, last


def read_value_comments(node: Any, key: Any) -> tuple[str, list[str]]:
    """The comment after a scalar value, without `#`, and the lines below it unchanged."""
    slots = node.ca.items.get(key) or []
    slot = _value_slot(node)
    return _split_token(slots[slot]) if len(slots) > slot else ("", [])


def read_key_comments(node: Any, key: Any) -> list[str]:
    """The comment lines before a key, without `#`."""
    slots = node.ca.items.get(key) or []
    return _read_lines(slots[_BEFORE]) if len(slots) > _BEFORE else []


def _value_slot(node: Any) -> int:
    """The slot of comments after a value: the first in a sequence, the third in a mapping."""
    return 0 if isinstance(node, CommentedSeq) else _AFTER


def insert_before(node: CommentedMap, key: Any, lines: list[str], column: int) -> None:
    """Insert comment lines before a key."""
    if lines:
        node.yaml_set_comment_before_after_key(key, before="\n".join(lines), indent=column)


def insert_below(node: Any, key: Any, inline: str, lines: list[str]) -> None:
    """Set the comment after a value, and the lines below it unchanged."""
    if not inline and not lines:
        node.ca.items.pop(key, None)
        return
    text = f"# {inline}\n" if inline else "\n"
    text += "".join(f"{line}\n" for line in lines)
    slots = node.ca.items.setdefault(key, [None, None, None, None])
    slots[_value_slot(node)] = CommentToken(text, CommentMark(0), None)


def strip_markers(lines: list[str]) -> list[str]:
    """Comment lines without indentation and `#`, without empty ones."""
    return [_strip_marker(line) for line in lines if line.strip()]


def as_comment_lines(lines: list[str], column: int) -> list[str]:
    """Texts as comment lines at a column."""
    return [f"{' ' * column}# {line}" for line in lines if line]


def _list_children(node: Any) -> list[tuple[Any, Any]]:
    if isinstance(node, CommentedMap):
        return list(node.items())
    return list(enumerate(node)) if isinstance(node, CommentedSeq) else []


def _split_token(token: Any) -> tuple[str, list[str]]:
    """The text of a token: after the value without `#`, and the lines below unchanged."""
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
