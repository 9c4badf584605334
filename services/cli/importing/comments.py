"""Comments of a part of a manifest that goes: taken out before, and put to what stays in its place."""

from __future__ import annotations

from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import CommentMark
from ruamel.yaml.tokens import CommentToken

#: Of an entry's four places in ruamel.yaml: comments behind the key, and behind the value with all lines that follow.
_BEFORE, _BEHIND, _BELOW = 1, 2, 3


def taken(node: Any, path: str = "") -> tuple[list[str], list[str]]:
    """The comments inside a node without `#`, in order, and the lines below its last value as they are.

    A comment beside a value is told with the value's key, since that goes. The lines below the last value belong to
    what comes next, so they keep their columns.
    """
    inside: list[str] = []
    last: list[str] = []
    for key, child in _children(node):
        inside += bare(last)
        last = []
        name = f"{path}.{key}" if path else str(key)
        places = node.ca.items.get(key) or []
        inside += _lines(places[_BEFORE]) if len(places) > _BEFORE else []
        beside, under = _split(places[0] if isinstance(node, CommentedSeq) and places else None)
        if isinstance(node, CommentedMap) and len(places) > _BEHIND:
            beside, under = _split(places[_BEHIND])
        if beside:
            inside.append(f"{name}: {beside}")
        if len(places) > _BELOW:
            inside += _lines(places[_BELOW])
        found, after = taken(child, name)
        if isinstance(child, CommentedMap | CommentedSeq):
            inside += [*bare(under), *found]
            last = after
        else:
            last = under
    own = getattr(node, "ca", None)
    if own is not None and own.comment and len(own.comment) > 1 and own.comment[1]:
        # The first place is the comment beside the node's own key, which the map around it holds too.
        inside = [*_lines(own.comment[1]), *inside]
    return inside, last


def below(node: Any, key: Any) -> tuple[str, list[str]]:
    """What stands beside a scalar value, without `#`, and the lines below it as they are."""
    places = node.ca.items.get(key) or []
    place = _place(node)
    return _split(places[place]) if len(places) > place else ("", [])


def before(node: CommentedMap, key: Any) -> list[str]:
    """The lines that were put before a key, without `#`."""
    places = node.ca.items.get(key) or []
    return _lines(places[_BEFORE]) if len(places) > _BEFORE and places[_BEFORE] else []


def _place(node: Any) -> int:
    """Where comments behind a value are kept: of a sequence first, of a map third."""
    return 0 if isinstance(node, CommentedSeq) else _BEHIND


def put_before(node: CommentedMap, key: Any, lines: list[str], column: int) -> None:
    """Put lines of comments before a key."""
    if lines:
        node.yaml_set_comment_before_after_key(key, before="\n".join(lines), indent=column)


def put_below(node: Any, key: Any, beside: str, lines: list[str]) -> None:
    """Put a comment beside a value, and lines below it as they are."""
    if not beside and not lines:
        node.ca.items.pop(key, None)
        return
    text = f"# {beside}\n" if beside else "\n"
    text += "".join(f"{line}\n" for line in lines)
    places = node.ca.items.setdefault(key, [None, None, None, None])
    places[_place(node)] = CommentToken(text, CommentMark(0), None)


def bare(lines: list[str]) -> list[str]:
    """Lines of comments without columns and `#`; empty ones go."""
    return [_bare(line) for line in lines if line.strip()]


def hashed(lines: list[str], column: int) -> list[str]:
    """Texts as lines of comments at a column."""
    return [f"{' ' * column}# {line}" for line in lines if line]


def _children(node: Any) -> list[tuple[Any, Any]]:
    if isinstance(node, CommentedMap):
        return list(node.items())
    return list(enumerate(node)) if isinstance(node, CommentedSeq) else []


def _split(token: Any) -> tuple[str, list[str]]:
    """A token's text: beside the value without `#`, and the lines below as they are."""
    if isinstance(token, list):
        return "", [line for one in token for line in str(one.value).rstrip("\n").split("\n")]
    if token is None:
        return "", []
    beside, _, rest = str(token.value).partition("\n")
    return _bare(beside), rest.split("\n")[:-1] if rest else []


def _lines(place: Any) -> list[str]:
    tokens = place if isinstance(place, list) else [place]
    return [
        _bare(line)
        for token in tokens
        if token is not None
        for line in str(token.value).rstrip("\n").split("\n")
        if line.strip()
    ]


def _bare(line: str) -> str:
    text = line.strip()
    return text[1:].removeprefix(" ") if text.startswith("#") else text
