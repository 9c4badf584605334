"""States of clusters, targets and topic discovery, with the messages for users: the remediation, no address, no secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class PollCode(StrEnum):
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
    CLUSTER = "cluster"
    FAILED = "failed"
    TOO_MANY_TOPICS = "too_many_topics"
    NO_MATCH = "no_match"
    OVER_QUOTA = "over_quota"
    LARGE = "large"


MESSAGES: Mapping[PollCode, str] = {
    PollCode.OK: "",
    PollCode.UNREACHABLE: "No broker of the cluster is reachable; check its bootstrap servers and the network.",
    PollCode.TIMEOUT: "The request to the cluster timed out.",
    PollCode.AUTHENTICATION_FAILED: "Authentication failed; check mechanism, user name and password.",
    PollCode.AUTHORIZATION_FAILED: "Authorization failed: the cluster's user needs DESCRIBE on topics and groups.",
    PollCode.TLS_FAILED: "TLS handshake with the cluster failed; check the CA, the client certificate and the host name.",
    PollCode.ADDRESS_REFUSED: "Bootstrap servers or advertised listeners resolve to addresses that are not allowed; "
    "correct them, or ask a platform administrator.",
    PollCode.SECRETS_UNREADABLE: "The stored secret cannot be decrypted; set LAGSCALE_SECRET_KEYS to the keys that "
    "encrypted it, or store the secret again.",
    PollCode.REFERENCE_BROKEN: "A secret reference of the cluster cannot be resolved; correct the reference, or the file "
    "or variable it names.",
    PollCode.TOKEN_PENDING: "An access token has been requested; polling starts when it is issued.",
    PollCode.TOKEN_UNAVAILABLE: "No access token could be obtained; check the token URL, the client ID and its secret.",
    PollCode.MECHANISM_MISSING: "The scraper's Kafka client is built without this mechanism; GSSAPI needs the scraper "
    "image with the distribution's librdkafka (docs/clusters.md).",
    PollCode.SETTINGS_REFUSED: "The Kafka client rejects the cluster's settings; check protocol, certificate and key.",
    PollCode.NO_TOPIC: "Topic not found.",
    PollCode.SHARE_GROUP: "Share groups are not supported: they have no committed offsets, so there is no lag to measure.",
    PollCode.INCOMPLETE: "Some partitions could not be read: no leader, or the request timed out.",
    PollCode.CLUSTER: "The cluster could not be polled; see the cluster's state.",
    PollCode.FAILED: "The cluster answered with an error.",
    PollCode.TOO_MANY_TOPICS: "The monitor matches more topics than allowed, so only the linked ones are evaluated; narrow "
    "topicPattern, or exclude topics with excludeTopics.",
    PollCode.NO_MATCH: "Nothing to measure: no topic matches topicPattern, or the group has no committed offsets.",
    PollCode.OVER_QUOTA: "The tenant's partition quota is exceeded; see the message of this state.",
    PollCode.LARGE: "The topic is oversized and polled out of band; its first sample follows shortly.",
}


@dataclass(frozen=True, slots=True)
class PollProblem:
    """Why something could not be read. `text` replaces the message of the code; `detail` is appended in parentheses."""

    code: PollCode
    detail: str = ""
    text: str = ""

    @property
    def message(self) -> str:
        """The text for users."""
        text = self.text or MESSAGES[self.code]
        return f"{text} ({self.detail})" if self.detail else text
