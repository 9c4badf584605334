"""What looking up topics needs of a cluster's client, and the topics of groups by their commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from services.scraper.kafka.status import PollProblem
from services.scraper.polling.round import Committed, GroupDescription, Partition

TopicsAnswer = frozenset[str] | PollProblem


class TopicClient(Protocol):
    """The part of a cluster's client that is used here; times are `time.monotonic()` seconds."""

    def list_topics(self, until: float) -> frozenset[str] | PollProblem:
        """Names of all topics."""
        ...

    def groups(self, names: Sequence[str], until: float) -> Callable[[], Mapping[str, GroupDescription | PollProblem]]:
        """States of groups."""
        ...

    def commits(
        self, groups: Mapping[str, Sequence[Partition]], until: float
    ) -> Callable[[], Mapping[str, Committed | PollProblem]]:
        """Committed offsets; without partitions all that the group has."""
        ...


def read_committed_topics(client: TopicClient, groups: Sequence[str], until: float) -> dict[str, TopicsAnswer]:
    """The topics on which each of the groups has commits."""
    # librdkafka crashes when a broker answers that it does not coordinate the group (confluentinc/librdkafka#5040), as
    # all do for a while in a fresh cluster; asked for the group's state it only says so.
    descriptions = client.groups(groups, until)()
    answers: dict[str, TopicsAnswer] = {
        group: state for group, state in descriptions.items() if isinstance(state, PollProblem)
    }
    ready = [group for group in groups if group not in answers]
    for group, committed in (client.commits(dict.fromkeys(ready, ()), until)() if ready else {}).items():
        if isinstance(committed, PollProblem):
            answers[group] = committed
        else:
            answers[group] = frozenset(topic for (topic, _), offset in committed.items() if offset is not None)
    return answers
