"""What a request knows of the object that it reads or changes: `If-Match` and `If-None-Match`, as RFC 9110 has them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Header

from lagscale.errors import FieldError, InvalidInput
from lagscale.store.registry.versions import Precondition as PreconditionValue

_ANY = "*"
_INVALID_TAG = 'must be the ETag of the answer that was read, as in "3", several by commas, or * for whatever is there'
_WEAK_TAG = "must be a strong tag: a proxy has made this one weak; leave W/ out, or let the proxy pass tags through"
_MAX_DIGITS = 9
#: More than a browser or a tool ever sends.
_MAX_TAGS = 32


def _parse_precondition(
    if_match: Annotated[
        str | None,
        Header(description='The version that was read, as in `"3"`; one of another version is not changed. 412.'),
    ] = None,
    if_none_match: Annotated[
        str | None, Header(description="`*`: create it, and leave one that is there as it is. 412.")
    ] = None,
) -> PreconditionValue | None:
    if if_match is not None and if_none_match is not None:
        raise InvalidInput([FieldError("If-None-Match", "cannot stand beside If-Match; remove one of them")])
    if if_none_match is not None:
        if if_none_match.strip() != _ANY:
            raise InvalidInput([FieldError("If-None-Match", "of a change must be *: create it, and change nothing")])
        return PreconditionValue(absent=True)
    if if_match is None:
        return None
    return PreconditionValue() if if_match.strip() == _ANY else PreconditionValue(frozenset(_versions(if_match)))


def _parse_cached_versions(
    if_none_match: Annotated[
        str | None, Header(description='The version that is known, as in `"3"`: 304 while it is still so.')
    ] = None,
) -> frozenset[int]:
    # A reader asks for less work only: what is no tag of ours is no version that we have.
    tags = (tag.strip().removeprefix("W/") for tag in (if_none_match or "").split(",")[:_MAX_TAGS])
    return frozenset(int(tag.strip('"')) for tag in tags if _is_tag(tag))


def _versions(text: str) -> list[int]:
    """The versions of a list of tags.

    Raises:
        InvalidInput: one of them is no tag of ours, or a weak one.
    """
    tags = [tag.strip() for tag in text.split(",")]
    for tag in tags:
        if tag.startswith("W/"):
            raise InvalidInput([FieldError("If-Match", _WEAK_TAG)])
        if not _is_tag(tag) or len(tags) > _MAX_TAGS:
            raise InvalidInput([FieldError("If-Match", _INVALID_TAG)])
    return [int(tag.strip('"')) for tag in tags]


def _is_tag(tag: str) -> bool:
    digits = tag[1:-1] if len(tag) > 1 and tag[0] == tag[-1] == '"' else tag
    return digits.isascii() and digits.isdecimal() and len(digits) <= _MAX_DIGITS


#: Of a change; None when the caller does not care.
Precondition = Annotated[PreconditionValue | None, Depends(_parse_precondition)]
#: Of a read: versions that the caller has.
CachedVersions = Annotated[frozenset[int], Depends(_parse_cached_versions)]
