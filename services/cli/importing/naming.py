"""Names of registered objects: unique in a tenant, and stable for the same manifests in any order. Names clusters and monitors.

Stands alone because both kinds of objects share its rules.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

_MAX_LENGTH = 63
_DIGITS = 8
Item = TypeVar("Item", bound=Hashable)


def assign_names(candidates: Mapping[Item, tuple[str, Sequence[str]]]) -> dict[Item, str]:
    """Item -> its name.

    Each item takes its first candidate that no other item of its tenant has among its own; items without such a
    candidate take their last one with digits of its hash.

    Args:
        candidates: item -> tenant and candidate names, the preferred ones first.
    """
    name_candidates = {
        candidate: (tenant, [normalize_name(name_candidate) for name_candidate in given])
        for candidate, (tenant, given) in candidates.items()
    }
    candidate_counts = Counter(
        (tenant, name_candidate)
        for tenant, given in name_candidates.values()
        for name_candidate in dict.fromkeys(given)
        if name_candidate
    )
    names: dict[Item, str] = {}
    for candidate, (tenant, given) in name_candidates.items():
        unique = [
            name_candidate
            for name_candidate in given
            if name_candidate and candidate_counts[tenant, name_candidate] == 1
        ]
        names[candidate] = unique[0] if unique else _append_hash(given[-1], candidates[candidate][1][-1])
    return names


def normalize_name(text: str) -> str:
    """A text as a name: lower-case letters, digits and hyphens; a long one is truncated, with digits of its hash."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return name if len(name) <= _MAX_LENGTH else _append_hash(name, text)


def _append_hash(name: str, text: str) -> str:
    digits = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    return f"{name[: _MAX_LENGTH - _DIGITS - 1].strip('-') or 'monitor'}-{digits}"
