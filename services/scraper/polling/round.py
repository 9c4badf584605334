"""The answers of a cluster, or why there is none; rounds, and the row that follows a target's newest one.

Functions without clock and I/O; the poll fills `PolledRound`, the sink calls `build_next_row`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from lagscale.domain.lag.rounds import MAX_AGE_MS, Carried, Note, SampleRow, TargetRound, build_row, is_first_seen
from lagscale.domain.lag.samples import Flag, Offsets, Sample, build_sample
from lagscale.domain.state_codes import StateCode
from lagscale.store.samples.write import TargetBaseline

Partition = tuple[str, int]
#: A group's commits: None where it has none; a partition that is absent could not be read.
Committed = Mapping[Partition, int | None]
#: Of each state of a cluster, a target or topic discovery, for users: the remediation, no address, no secret.
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
    StateCode.OFFSETS_INVALID: "The topic is not measured: offsets are negative, or greater than those of any topic; check the "
    "brokers and the group's commits.",
    StateCode.MEMBERS_UNKNOWN: "Lag is measured, but members are not known: the brokers do not answer requests to describe "
    "the group.",
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


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic's id, and whether each partition has a leader."""

    topic_id: str
    partitions: Mapping[int, bool]


@dataclass(frozen=True, slots=True)
class Ends:
    """Log starts, high watermarks and last stable offsets; what could not be read is absent."""

    starts: Mapping[Partition, int]
    highs: Mapping[Partition, int]
    stables: Mapping[Partition, int]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group's member count, and the code of its state."""

    members: int
    state: int


@dataclass(frozen=True, slots=True)
class PolledRound:
    """One target's answers in one round; None where something was not read.

    Attributes:
        at_ms: when the first request was sent, by the database's clock.
        topic_id: None if the topic does not exist.
        offsets: by partition, as many as the metadata names.
        interval_ms: the real polling interval of the target.
        stale_after_ms: after this time without a topic the target has no partitions.
        limitation: partitions that are measured, such as `1,3,5-8`; empty for all.
        ends_asked_ms: earliest time at which the brokers read the end offsets, after `at_ms`.
        ends_answered_ms: latest time at which they did.
    """

    at_ms: int
    topic_id: str | None
    offsets: tuple[Offsets | None, ...]
    interval_ms: int
    stale_after_ms: int
    limitation: str = ""
    members: int | None = None
    group_state: int | None = None
    ends_asked_ms: int | None = None
    ends_answered_ms: int | None = None


@dataclass(frozen=True, slots=True)
class NewRow:
    """A row, and the topic's id; `new_id` if it differs from the stored one."""

    row: SampleRow
    topic_id: str | None = None
    new_id: bool = False


def build_next_row(before: TargetBaseline, polled: PolledRound) -> NewRow | None:
    """The row of this round; None if it is not later than the newest stored row, because its markers would be wrong."""
    if before.row is not None and polled.at_ms <= before.row.round.at_ms:
        return None
    if polled.topic_id is None:
        return NewRow(build_row(before.row, _build_absent_round(before, polled)))
    new_id = polled.topic_id != before.topic_id
    incarnation = before.incarnation + 1 if new_id and before.topic_id is not None else before.incarnation
    current = _build_present_round(before.row, polled, incarnation)
    return NewRow(build_row(before.row, current), polled.topic_id, new_id)


def _build_present_round(previous: SampleRow | None, polled: PolledRound, incarnation: int) -> TargetRound:
    count = len(polled.offsets)
    if previous is not None and previous.round.incarnation == incarnation and not previous.round.notes & Note.NO_TOPIC:
        # A topic id never loses partitions: those that metadata does not name are missing.
        count = max(count, len(previous.round.samples))
    excluded = _find_excluded(polled.limitation, count)
    samples: list[Sample | None] = [None] * count
    for partition, offsets in enumerate(polled.offsets):
        if offsets is None or partition in excluded:
            continue
        newest = None if previous is None else previous.newest(partition)
        first_seen = is_first_seen(previous, polled.at_ms, polled.interval_ms, partition)
        samples[partition] = _build_sample(offsets, newest, previous, incarnation, first_seen)
    return TargetRound(
        at_ms=polled.at_ms,
        incarnation=incarnation,
        samples=tuple(samples),
        excluded=excluded,
        members=polled.members,
        members_age_ms=None if polled.members is None else 0,
        group_state=polled.group_state,
        ends_asked_ms=polled.ends_asked_ms,
        ends_answered_ms=polled.ends_answered_ms,
    )


def _build_sample(
    offsets: Offsets, newest: Carried | None, previous: SampleRow | None, incarnation: int, first_seen: bool
) -> Sample:
    if newest is None or previous is None:
        return build_sample(offsets, None, first_seen=first_seen)
    same_id = previous.round.incarnation == incarnation and not newest.sample.flags & Flag.RECREATED
    return build_sample(offsets, newest.sample, same_id=same_id, first_seen=first_seen, was_recreated=incarnation > 0)


def _build_absent_round(before: TargetBaseline, polled: PolledRound) -> TargetRound:
    """The topic does not exist: its partitions are missing until it has been absent for long enough, then there are none."""
    previous = before.row
    age = 0
    if previous is not None and previous.round.absent_age_ms is not None:
        age = min(previous.round.absent_age_ms + polled.at_ms - previous.round.at_ms, MAX_AGE_MS)
    is_removed = previous is None or not previous.round.samples or age >= polled.stale_after_ms
    count = 0 if is_removed or previous is None else len(previous.round.samples)
    return TargetRound(
        at_ms=polled.at_ms,
        incarnation=before.incarnation,
        samples=(None,) * count,
        excluded=_find_excluded(polled.limitation, count),
        notes=Note.NO_TOPIC if is_removed else Note(0),
        members=polled.members,
        members_age_ms=None if polled.members is None else 0,
        group_state=polled.group_state,
        absent_age_ms=age,
    )


@lru_cache(maxsize=4096)
def _find_excluded(limitation: str, partitions: int) -> frozenset[int]:
    """The partitions that a limitation excludes."""
    if not limitation.strip():
        return frozenset()
    inside: set[int] = set()
    # The registration was validated.
    for first, last in re.findall(r"(\d+)(?:\s*-\s*(\d+))?", limitation):
        inside.update(range(int(first), int(last or first) + 1))
    return frozenset(range(partitions)) - inside
