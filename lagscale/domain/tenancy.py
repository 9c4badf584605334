"""Names, content hashes, name suggestions, and the tenant of a caller, for the scaler, the API and the CLI."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from lagscale.domain.policy.keys import KEYS_BY_NAME

#: What a monitor's, a cluster's or a tenant's name looks like; a monitor's name is its metric name.
NAME_PATTERN = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
#: The pattern in words, for errors.
NAME_FORM = "must be 1 to 63 of a-z, 0-9 and -, with no - at either end"
#: The KEDA instance of a caller without a client certificate.
DEFAULT_INSTANCE = "default"
#: The namespace of a binding of a whole KEDA instance.
ANY_NAMESPACE = "*"
#: Kafka allows 32,767 bytes; the index of the targets holds a group and a topic in less than 2,700.
MAX_GROUP_BYTES = 2048
_MAX_LENGTH = 63
_HEX_DIGITS = 8


def is_name(text: str) -> bool:
    """Whether the text can name a monitor, a cluster or a tenant."""
    return NAME_PATTERN.fullmatch(text) is not None


def compute_content_hash(
    cluster: str,
    group: str,
    topics: Iterable[str],
    given: Mapping[str, str],
    *,
    pattern: str | None = None,
    exclude: Iterable[str] = (),
) -> str:
    """SHA-256 (hex) of a monitor's identity: cluster, group, topics in any order, and the policy keys as given.

    Unknown keys, empty texts, and surrounding whitespace make no difference.
    """
    policy = {name: text.strip() for name, text in given.items() if name in KEYS_BY_NAME and text.strip()}
    content: dict[str, object] = {"cluster": cluster, "group": group, "topics": sorted(set(topics)), "policy": policy}
    if pattern is not None:
        content["pattern"] = pattern
    if excluded := sorted(set(exclude)):
        content["exclude"] = excluded
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def build_inline_name(group: str, topics: Sequence[str], digest: str) -> str:
    """The name of a monitor that trigger metadata describes: group and topics, reduced, and 8 digits of its hash."""
    words = "-".join((group, *topics)).lower()
    reduced = re.sub(r"[^a-z0-9]+", "-", words).strip("-")[: _MAX_LENGTH - _HEX_DIGITS - 1].strip("-")
    return f"{reduced}-{digest[:_HEX_DIGITS]}" if reduced else digest[:_HEX_DIGITS]


def find_group_error(group: str) -> str | None:
    """Why a consumer group's name cannot be registered; None if it can."""
    if not group.strip():
        return "must name a consumer group"
    if not group.isprintable():
        return "must be printable characters on one line"
    if len(group.encode()) > MAX_GROUP_BYTES:
        return f"must be at most {MAX_GROUP_BYTES:,} bytes"
    return None


def suggest_names(name: str, names: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Similar names, the nearest first. Call it only with names that the caller may see."""
    return tuple(get_close_matches(name.lower(), sorted(names), n=limit, cutoff=0.6))


def compute_edit_distance(one: str, other: str, limit: int = 2) -> int:
    """Levenshtein's distance, or `limit` + 1 when it is greater.

    Own code, because no dependency has it and difflib's ratio accepts more than typos of short names.
    """
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    previous = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        present = [row]
        for column, against in enumerate(other, 1):
            swap = previous[column - 1] + (letter != against)
            present.append(min(swap, previous[column] + 1, present[-1] + 1))
        previous = present
    return min(previous[-1], limit + 1)


def find_tenant(bindings: Mapping[tuple[str, str], int], instance: str, namespace: str) -> int | None:
    """The tenant of a (KEDA instance, Kubernetes namespace); None without a binding.

    A binding of `*` takes the whole instance and excludes every other binding of it.
    """
    whole = bindings.get((instance, ANY_NAMESPACE))
    return whole if whole is not None else bindings.get((instance, namespace))
