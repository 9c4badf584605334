"""The topics of a monitor: a list, a pattern, or all topics with commits of its group; and exclusions.

Tenants write patterns, and processes that serve all tenants match them; so RE2 does, whose time grows with the length
of pattern and name only. Scaler, API and scraper use this module.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import re2

from lagscale.errors import FieldError

#: Prefix of internal topics of Kafka and its tools; no pattern matches them.
INTERNAL_PREFIX: Final = "__"
MAX_PATTERN_LENGTH: Final = 300
MAX_EXCLUDED: Final = 50
#: Default of the scraper's limit on the topics that a monitor matches by pattern or by group, and its setting.
DEFAULT_MAX_TOPICS: Final = 100
MAX_TOPICS_SETTING: Final = "LAGSCALE_SCRAPER_MAX_TOPICS_PER_MONITOR"
#: Upper bound of the steps to match one character of a name; a pattern that compiles to more is rejected.
_MAX_PROGRAM_SIZE: Final = 500
_MAX_MEMORY_BYTES: Final = 256 * 1024
_LOOKAROUND = re.compile(r"\(\?<?[=!]")
_LOOKAROUND_HINT: Final = (
    "; RE2 has no lookahead or lookbehind: match the topics with topicPattern, and exclude others with excludeTopics"
)
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_CACHE_SIZE: Final = 4_096


@dataclass(frozen=True, slots=True)
class TopicScope:
    """Topics by name. Without `topics` and `pattern`: every topic on which the group has commits.

    Attributes:
        topics: the list; sorted or as registered.
        pattern: a regular expression in RE2 syntax for the whole name of a topic.
        exclude: names and patterns that are excluded from those of a pattern or of the group.
    """

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    exclude: tuple[str, ...] = ()

    @property
    def is_listed(self) -> bool:
        """Whether the topics are listed, so that no discovery is needed."""
        return bool(self.topics)

    def matches(self, topic: str) -> bool:
        """Whether a topic of this name is in scope, given that it exists and, without a pattern, has commits."""
        if self.topics:
            return topic in self.topics
        if topic.startswith(INTERNAL_PREFIX) or (self.pattern is not None and not _matches(self.pattern, topic)):
            return False
        return not any(_is_excluded_by(entry, topic) for entry in self.exclude)

    def filter_names(self, names: Iterable[str]) -> frozenset[str]:
        """The names that are in scope."""
        return frozenset(name for name in names if self.matches(name))

    def field_errors(self, names: Mapping[str, str]) -> list[FieldError]:
        """Validation errors, with the field names of the caller.

        Args:
            names: the caller's names of `topics`, `pattern` and `exclude`.
        """
        found = []
        if self.topics and self.pattern is not None:
            found.append(FieldError(names["pattern"], f"cannot be combined with {names['topics']}; set one of the two"))
        if self.topics and self.exclude:
            found.append(
                FieldError(names["exclude"], f"excludes topics of a pattern or of a group, not of {names['topics']}")
            )
        if self.pattern is not None and (reason_text := _find_pattern_error(self.pattern)) is not None:
            found.append(FieldError(names["pattern"], reason_text))
        if len(self.exclude) > MAX_EXCLUDED:
            found.append(
                FieldError(names["exclude"], f"has {len(self.exclude)} entries, at most {MAX_EXCLUDED} are allowed")
            )
        wrongs = (_find_pattern_error(entry) for entry in self.exclude[:MAX_EXCLUDED])
        found += [FieldError(names["exclude"], reason_text) for reason_text in wrongs if reason_text is not None][:1]
        return found


def lacks_single_topic(scope: TopicScope) -> bool:
    """Whether `partitionLimitation` is impossible: it needs exactly one listed topic."""
    return len(scope.topics) != 1


def _is_excluded_by(entry: str, topic: str) -> bool:
    # The dots of a plain name must not exclude other topics.
    return topic == entry if _NAME.fullmatch(entry) else _matches(entry, topic)


def _find_pattern_error(pattern: str) -> str | None:
    if not pattern:
        return "is empty; omit it"
    if len(pattern) > MAX_PATTERN_LENGTH:
        return f"has {len(pattern)} characters, at most {MAX_PATTERN_LENGTH} are allowed"
    if not pattern.isascii() or not pattern.isprintable():
        return "contains characters that no topic name has"
    try:
        size = _compile(pattern).programsize
    except re2.error as refused:
        reason = refused.args[0] if refused.args else ""
        text = reason.decode("ascii", "replace") if isinstance(reason, bytes) else str(reason)
        return f"is not a regular expression in RE2 syntax: {text}{_LOOKAROUND_HINT if _LOOKAROUND.search(pattern) else ''}"
    if size > _MAX_PROGRAM_SIZE:
        return "is too large: it repeats too much; shorten it, or create several monitors"
    return None


def _matches(pattern: str, topic: str) -> bool:
    try:
        return _compile(pattern).fullmatch(topic.encode()) is not None
    except re2.error:
        # Checked at registration; a pattern that no longer compiles matches nothing.
        return False


@lru_cache(_CACHE_SIZE)
def _compile(pattern: str) -> Any:
    options = re2.Options()
    options.max_mem = _MAX_MEMORY_BYTES
    options.log_errors = False
    options.never_capture = True
    # Names of topics are ASCII. Bytes keep the character classes small.
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(pattern.encode("ascii", "replace"), options=options)


def normalize_names(names: Collection[str]) -> tuple[str, ...]:
    """Entries of a list in a fixed order, without duplicates and surrounding whitespace."""
    return tuple(sorted({name.strip() for name in names if name.strip()}))
