"""What the framework says of a fault, in words that say what must be there; never with the input, which may be secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from lagscale.errors import Fault

#: By the framework's types, where its own words are no way out.
_TEXTS: Final[Mapping[str, str]] = {
    "missing": "must be given",
    "extra_forbidden": "is not known here: correct its name, or leave it out",
    "json_invalid": "must be JSON in UTF-8",
    "model_attributes_type": "must be a JSON object",
    "model_type": "must be a JSON object",
    "dict_type": "must be a JSON object",
    "timezone_aware": "must have its time zone, as in 2030-01-31T12:00:00Z",
}
_LONGEST = 64
_SUBJECT = re.compile(r"^(?:Input|Value|String|List|Dictionary|Data|Number)\b(?: item)? should ")


def fault_of(found: Mapping[str, Any]) -> Fault:
    """A fault from one of the framework's errors, of which only place, type and text are read."""
    return Fault(_field(found["loc"]), _text(str(found["type"]), str(found["msg"])))


def _text(kind: str, said: str) -> str:
    if kind in _TEXTS:
        return _TEXTS[kind]
    return _SUBJECT.sub("must ", said.removeprefix("Value error, "))


def _field(location: tuple[int | str, ...]) -> str:
    # ("body", "topics", 0) -> "topics.0"; a body that is no JSON has a byte's number there.
    place, *path = location
    if not path or (isinstance(path[0], int) and len(path) == 1):
        return str(place)
    if place == "header":
        return "-".join(part.capitalize() for part in str(path[0]).split("-"))
    # Names of the caller's own are shown, and may have any length.
    return ".".join(str(part)[:_LONGEST] for part in path)
