"""Names for what is registered: derived, unique in a tenant, and the same for the same manifests in any order."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

_LONGEST = 63
_DIGITS = 8
Thing = TypeVar("Thing", bound=Hashable)


def named(things: Mapping[Thing, tuple[str, Sequence[str]]]) -> dict[Thing, str]:
    """Thing -> its name.

    Each takes its first stem that nobody else of its tenant has among theirs; of those that are left, all take
    their last stem with digits of a hash of it.

    Args:
        things: each with its tenant, and its stems, the most wanted first.
    """
    stems = {thing: (tenant, [reduced(stem) for stem in given]) for thing, (tenant, given) in things.items()}
    wanted = Counter((tenant, stem) for tenant, given in stems.values() for stem in dict.fromkeys(given) if stem)
    names: dict[Thing, str] = {}
    for thing, (tenant, given) in stems.items():
        free = [stem for stem in given if stem and wanted[tenant, stem] == 1]
        names[thing] = free[0] if free else _hashed(given[-1], things[thing][1][-1])
    return names


def reduced(text: str) -> str:
    """A text as a name: small letters, digits and hyphens; a long one is cut and told apart by a hash."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return name if len(name) <= _LONGEST else _hashed(name, text)


def _hashed(name: str, text: str) -> str:
    digits = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    return f"{name[: _LONGEST - _DIGITS - 1].strip('-') or 'monitor'}-{digits}"
