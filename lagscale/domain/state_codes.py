"""The codes of stored states; the scraper writes them, and the API, the registry and SQL (`:code.NAME`) compare them."""

from __future__ import annotations

from enum import StrEnum


class StateCode(StrEnum):
    """State of a cluster, a target, or a monitor's topic discovery, as stored."""

    OK = "ok"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    AUTHENTICATION_FAILED = "authentication_failed"
    AUTHORIZATION_FAILED = "authorization_failed"
    TLS_FAILED = "tls_failed"
    ADDRESS_REFUSED = "address_refused"
    SECRETS_UNREADABLE = "secrets_unreadable"
    REFERENCE_BROKEN = "reference_broken"
    TOKEN_PENDING = "token_pending"  # noqa: S105  # A state's name.
    TOKEN_UNAVAILABLE = "token_unavailable"  # noqa: S105  # Another one.
    MECHANISM_MISSING = "mechanism_missing"
    SETTINGS_REFUSED = "settings_refused"
    NO_TOPIC = "no_topic"
    SHARE_GROUP = "share_group"
    INCOMPLETE = "incomplete"
    OFFSETS_INVALID = "offsets_invalid"
    MEMBERS_UNKNOWN = "members_unknown"
    CLUSTER = "cluster"
    FAILED = "failed"
    TOO_MANY_TOPICS = "too_many_topics"
    NO_MATCH = "no_match"
    OVER_QUOTA = "over_quota"
    LARGE = "large"
