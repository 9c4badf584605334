"""Open transactions: what is stored of a round, and what is told of it."""

from __future__ import annotations

from lagscale.domain.group_status.transactions import (
    MAX_STORED,
    OpenTransaction,
    build_unstable,
    list_open_transactions,
)
from lagscale.domain.policy.policy import IsolationLevel
from lagscale.domain.wording.group_status import describe_unstable


def test_partitions_whose_last_stable_offset_is_below_the_high_watermark_are_stored() -> None:
    highs, stables = {0: 10, 1: 10, 2: 10, 3: 10, 4: 10}, {0: 10, 1: 7, 3: -1, 4: 11, 5: 3}
    assert build_unstable(highs, stables, 50) == {"at": 50, "partitions": {"1": [7, 3, 50]}}


def test_of_many_partitions_those_with_the_most_messages_are_stored() -> None:
    stored = build_unstable({n: n + 1 for n in range(300)}, dict.fromkeys(range(300), 0), 50)
    assert list(stored["partitions"]) == [str(n) for n in range(299, 299 - MAX_STORED, -1)]


def test_what_two_readings_found_is_told() -> None:
    unstable = {"at": 90, "partitions": {"0": [7, 3, 50], "1": [5, 1, 90]}}
    assert list(list_open_transactions("orders", unstable)) == [OpenTransaction("orders", 0, 7, 3, 50, 90)]
    assert list(list_open_transactions("orders", None)) == []


def test_one_message_is_singular() -> None:
    text = describe_unstable("orders", 1, IsolationLevel.READ_UNCOMMITTED)
    assert text.startswith("1 message of orders lies behind an open transaction.")
