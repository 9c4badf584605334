"""Comments of a part of a manifest that goes: taken out before, and put to what stays in its place."""

from __future__ import annotations

from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import CommentMark
from ruamel.yaml.tokens import CommentToken

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
