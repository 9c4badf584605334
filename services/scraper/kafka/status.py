"""States of clusters, targets and topic discovery, with the messages for users: the remediation, no address, no secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lagscale.domain.state_codes import StateCode

MESSAGES: Mapping[StateCode, str] = {
    StateCode.OK: "",
    StateCode.UNREACHABLE: "No broker of the cluster is reachable; check its bootstrap servers and the network.",
    StateCode.TIMEOUT: "The request to the cluster timed out.",
    StateCode.AUTHENTICATION_FAILED: "Authentication failed; check mechanism, user name and password.",
    StateCode.AUTHORIZATION_FAILED: "Authorization failed: the cluster's user needs DESCRIBE on topics and groups.",
    StateCode.TLS_FAILED: "TLS handshake with the cluster failed; check the CA, the client certificate and the host name.",
    StateCode.ADDRESS_REFUSED: "Bootstrap servers or advertised listeners resolve to addresses that are not allowed; "
    "correct them, or ask a platform administrator.",
    StateCode.SECRETS_UNREADABLE: "The stored secret cannot be decrypted; set LAGSCALE_SECRET_KEYS to the keys that "
    "encrypted it, or store the secret again.",
    StateCode.REFERENCE_BROKEN: "A secret reference of the cluster cannot be resolved; correct the reference, or the file "
    "or variable it names.",
    StateCode.TOKEN_PENDING: "An access token has been requested; polling starts when it is issued.",
    StateCode.TOKEN_UNAVAILABLE: "No access token could be obtained; check the token URL, the client ID and its secret.",
    StateCode.MECHANISM_MISSING: "The scraper's Kafka client is built without this mechanism; GSSAPI needs the scraper "
    "image with the distribution's librdkafka (docs/clusters.md).",
    StateCode.SETTINGS_REFUSED: "The Kafka client rejects the cluster's settings; check protocol, certificate and key.",
    StateCode.NO_TOPIC: "Topic not found.",
    StateCode.SHARE_GROUP: "Share groups are not supported: they have no committed offsets, so there is no lag to measure.",
    StateCode.INCOMPLETE: "Some partitions could not be read: no leader, or the request timed out.",
    StateCode.CLUSTER: "The cluster could not be polled; see the cluster's state.",
    StateCode.FAILED: "The cluster answered with an error.",
    StateCode.TOO_MANY_TOPICS: "The monitor matches more topics than allowed, so only the linked ones are evaluated; narrow "
    "topicPattern, or exclude topics with excludeTopics.",
    StateCode.NO_MATCH: "Nothing to measure: no topic matches topicPattern, or the group has no committed offsets.",
    StateCode.OVER_QUOTA: "The tenant's partition quota is exceeded; see the message of this state.",
    StateCode.LARGE: "The topic is oversized and polled out of band; its first sample follows shortly.",
}


@dataclass(frozen=True, slots=True)
class PollProblem:
    """Why something could not be read. `text` replaces the message of the code; `detail` is appended in parentheses."""

    code: StateCode
    detail: str = ""
    text: str = ""

    @property
    def message(self) -> str:
        """The text for users."""
        text = self.text or MESSAGES[self.code]
        return f"{text} ({self.detail})" if self.detail else text
