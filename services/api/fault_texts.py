"""What the framework says of a fault, in words that say what must be there; never with the input, which may be secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from lagscale.errors import FieldError

#: By the framework's types, where its own words are no way out.
_MESSAGES: Final[Mapping[str, str]] = {
    "missing": "must be given",
    "extra_forbidden": "is not known here: correct its name, or leave it out",
    "json_invalid": "must be JSON in UTF-8",
    "model_attributes_type": "must be a JSON object",
    "model_type": "must be a JSON object",
    "dict_type": "must be a JSON object",
    "timezone_aware": "must have its time zone, as in 2030-01-31T12:00:00Z",
}
_MAX_NAME_LENGTH = 64
_SUBJECT = re.compile(r"^(?:Input|Value|String|List|Dictionary|Data|Number)\b(?: item)? should ")


def parse_framework_error(framework_error: Mapping[str, Any]) -> FieldError:
    """A fault from one of the framework's errors, of which only place, type and text are read."""
    return FieldError(
        _build_field_path(framework_error["loc"]),
        _build_message(str(framework_error["type"]), str(framework_error["msg"])),
    )


def _build_message(error_type: str, framework_message: str) -> str:
    if error_type in _MESSAGES:
        return _MESSAGES[error_type]
    return _SUBJECT.sub("must ", framework_message.removeprefix("Value error, "))


def _build_field_path(location: tuple[int | str, ...]) -> str:
    # ("body", "topics", 0) -> "topics.0"; a body that is no JSON has a byte's number there.
    place, *path = location
    if not path or (isinstance(path[0], int) and len(path) == 1):
        return str(place)
    if place == "header":
        return "-".join(part.capitalize() for part in str(path[0]).split("-"))
    # Names of the caller's own are shown, and may have any length.
    return ".".join(str(part)[:_MAX_NAME_LENGTH] for part in path)
