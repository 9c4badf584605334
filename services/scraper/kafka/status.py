"""Named states of clusters and targets, with the texts that users read: no address, no secret, and the way out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class PollCode(StrEnum):
    """What is stored as the state of a cluster or a target."""

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
    PollCode.UNREACHABLE: "No broker of the cluster answers; check its bootstrap servers and the network.",
    PollCode.TIMEOUT: "The cluster did not answer in time.",
    PollCode.AUTHENTICATION_FAILED: "The cluster refuses the credentials; check mechanism, user name and password.",
    PollCode.AUTHORIZATION_FAILED: "The cluster's user may not describe this; it needs DESCRIBE on topics and groups.",
    PollCode.TLS_FAILED: "TLS with the cluster fails; check the CA, the client certificate and the host name.",
    PollCode.ADDRESS_REFUSED: "The cluster's bootstrap servers, or the listeners that its brokers advertise, do not lead to "
    "addresses that this system may connect to; correct them, or ask the platform's administrators.",
    PollCode.SECRETS_UNREADABLE: "The stored secret cannot be decrypted; set LAGSCALE_SECRET_KEYS to the set that wrote it, "
    "or store the secret again.",
    PollCode.REFERENCE_BROKEN: "A secret of the cluster stands in a file or a variable that cannot be used; correct "
    "the reference, or what it leads to.",
    PollCode.TOKEN_PENDING: "The cluster's access token has been asked for; the cluster is polled as soon as it is here.",
    PollCode.TOKEN_UNAVAILABLE: "No access token for the cluster can be had; check the token URL, the client and its secret.",
    PollCode.MECHANISM_MISSING: "The scraper's Kafka client is built without this mechanism; GSSAPI needs the scraper's image "
    "with the distribution's librdkafka (docs/clusters.md).",
    PollCode.SETTINGS_REFUSED: "The Kafka client refuses the cluster's settings; check protocol, certificate and key.",
    PollCode.NO_TOPIC: "There is no such topic.",
    PollCode.SHARE_GROUP: "This is a share group; it has no committed offsets, so its lag cannot be measured.",
    PollCode.INCOMPLETE: "Some partitions could not be read: no leader, or no answer in time.",
    PollCode.CLUSTER: "Its cluster could not be polled; see the cluster's state.",
    PollCode.FAILED: "The cluster answered with an error.",
    PollCode.TOO_MANY_TOPICS: "The monitor means more topics than it may measure, so it is judged by a part only; narrow its "
    "topicPattern, or leave topics out by excludeTopics.",
    PollCode.NO_MATCH: "There is nothing to measure: no topic matches topicPattern, or the group has committed on none.",
    PollCode.OVER_QUOTA: "The tenant's quota of partitions is used up; see the text of this state.",
    PollCode.LARGE: "The topic is so large that it is polled beside the ticks; its first sample comes in a moment.",
}


@dataclass(frozen=True, slots=True)
class PollProblem:
    """Why something could not be read; `text` where it is more than the code and a detail say."""

    code: PollCode
    detail: str = ""
    text: str = ""

    @property
    def message(self) -> str:
        """The text for the user."""
        text = self.text or MESSAGES[self.code]
        return f"{text} ({self.detail})" if self.detail else text
