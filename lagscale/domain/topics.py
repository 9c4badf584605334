"""Which topics a monitor means: a list, a pattern, or all that its group has committed on; and what is left out.

Patterns are written by every tenant and matched in processes that serve all of them, so they are matched by RE2: its
time grows with the length of pattern and name only. Scaler, API and scraper read them here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import re2

from lagscale.errors import FieldError

#: Topics that begin so are Kafka's own or its tools'; no pattern means them.
INTERNAL: Final = "__"
MAX_PATTERN_LENGTH: Final = 300
MAX_EXCLUDED: Final = 50
#: Steps that matching one letter of a name may take at most; a pattern that compiles to more is refused.
_MAX_PROGRAM_SIZE: Final = 500
_MAX_MEMORY_BYTES: Final = 256 * 1024
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_CACHE_SIZE: Final = 4_096


@dataclass(frozen=True, slots=True)
class TopicScope:
    """Topics by name. Without `topics` and `pattern` it means every topic on which the group has commits.

    Attributes:
        topics: the list; sorted or as registered.
        pattern: a regular expression in RE2's syntax for the whole name of a topic.
        exclude: names and patterns that are left out of a pattern's topics or of the group's.
    """

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    exclude: tuple[str, ...] = ()

    @property
    def is_listed(self) -> bool:
        """Whether the topics are named one by one, so that nothing has to be looked up."""
        return bool(self.topics)

    def admits(self, topic: str) -> bool:
        """Whether a topic of this name belongs to the scope, if it exists and, without a pattern, has commits."""
        if self.topics:
            return topic in self.topics
        if topic.startswith(INTERNAL) or (self.pattern is not None and not _matches(self.pattern, topic)):
            return False
        return not any(_excludes(entry, topic) for entry in self.exclude)

    def filter_names(self, names: Iterable[str]) -> frozenset[str]:
        """Those of the names that belong to the scope."""
        return frozenset(name for name in names if self.admits(name))

    def field_errors(self, names: Mapping[str, str]) -> list[FieldError]:
        """What is wrong with it, by the field's name at the edge that read it.

        Args:
            names: how the edge calls `topics`, `pattern` and `exclude`.
        """
        found = []
        if self.topics and self.pattern is not None:
            found.append(FieldError(names["pattern"], f"cannot stand beside {names['topics']}; give one of the two"))
        if self.topics and self.exclude:
            found.append(
                FieldError(
                    names["exclude"], f"leaves topics out of a pattern or of a group's, not of {names['topics']}"
                )
            )
        if self.pattern is not None and (reason_text := _find_pattern_error(self.pattern)) is not None:
            found.append(FieldError(names["pattern"], reason_text))
        if len(self.exclude) > MAX_EXCLUDED:
            found.append(
                FieldError(names["exclude"], f"has {len(self.exclude)} entries, at most {MAX_EXCLUDED} are read")
            )
        wrongs = (_find_pattern_error(entry) for entry in self.exclude[:MAX_EXCLUDED])
        found += [FieldError(names["exclude"], reason_text) for reason_text in wrongs if reason_text is not None][:1]
        return found


def lacks_single_topic(scope: TopicScope) -> bool:
    """Whether `partitionLimitation` cannot be read: it counts the partitions of exactly one listed topic."""
    return len(scope.topics) != 1


def _excludes(entry: str, topic: str) -> bool:
    # A plain name means itself: its dots must not leave out a topic that only looks like it.
    return topic == entry if _NAME.fullmatch(entry) else _matches(entry, topic)


def _find_pattern_error(pattern: str) -> str | None:
    if not pattern:
        return "is empty; leave it out"
    if len(pattern) > MAX_PATTERN_LENGTH:
        return f"has {len(pattern)} letters, at most {MAX_PATTERN_LENGTH} are read"
    if not pattern.isascii() or not pattern.isprintable():
        return "holds letters that no topic's name has"
    try:
        size = _compile(pattern).programsize
    except re2.error as refused:
        reason = refused.args[0] if refused.args else ""
        text = reason.decode("ascii", "replace") if isinstance(reason, bytes) else str(reason)
        return f"is no regular expression of RE2: {text}"
    if size > _MAX_PROGRAM_SIZE:
        return "is too large: it repeats too much; write it shorter, or give several monitors"
    return None


def _matches(pattern: str, topic: str) -> bool:
    try:
        return _compile(pattern).fullmatch(topic.encode()) is not None
    except re2.error:
        # It was checked when it was registered; what cannot be read since means nothing.
        return False


@lru_cache(_CACHE_SIZE)
def _compile(pattern: str) -> Any:
    options = re2.Options()
    options.max_mem = _MAX_MEMORY_BYTES
    options.log_errors = False
    options.never_capture = True
    # Names of topics are ASCII. Bytes keep the classes of letters small.
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(pattern.encode("ascii", "replace"), options=options)


def normalize_names(names: Collection[str]) -> tuple[str, ...]:
    """Entries of a list, without doubles and spaces, in a fixed order: a scope does not depend on it."""
    return tuple(sorted({name.strip() for name in names if name.strip()}))
