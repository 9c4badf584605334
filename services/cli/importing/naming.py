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


def assign_names(candidates: Mapping[Thing, tuple[str, Sequence[str]]]) -> dict[Thing, str]:
    """Thing -> its name.

    Each takes its first stem that nobody else of its tenant has among theirs; of those that are left, all take
    their last stem with digits of a hash of it.

    Args:
        candidates: each with its tenant, and its stems, the most wanted first.
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
    names: dict[Thing, str] = {}
    for candidate, (tenant, given) in name_candidates.items():
        unique = [
            name_candidate
            for name_candidate in given
            if name_candidate and candidate_counts[tenant, name_candidate] == 1
        ]
        names[candidate] = unique[0] if unique else _append_hash(given[-1], candidates[candidate][1][-1])
    return names


def normalize_name(text: str) -> str:
    """A text as a name: small letters, digits and hyphens; a long one is cut and told apart by a hash."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return name if len(name) <= _LONGEST else _append_hash(name, text)


def _append_hash(name: str, text: str) -> str:
    digits = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    return f"{name[: _LONGEST - _DIGITS - 1].strip('-') or 'monitor'}-{digits}"
