"""Open transactions of a monitor's partitions; alone because the status and the explanation of a monitor both show them."""

from __future__ import annotations

from collections.abc import Sequence

from lagscale.clock import to_datetime
from lagscale.domain.group_status.transactions import list_open_transactions
from lagscale.domain.policy.policy import Policy
from lagscale.domain.wording.group_status import describe_open_transaction
from lagscale.store.registry.session import Row
from services.api.group_status.schemas import OpenTransactionOut
from services.api.schemas import format_time


def serialize_open_transactions(targets: Sequence[Row], policy: Policy) -> list[OpenTransactionOut]:
    """Of the partitions in scope of a monitor's targets, those with the most messages first."""
    included = policy.partition_limitation
    found = [
        one
        for target in targets
        for one in list_open_transactions(str(target["topic"]), target["unstable"])
        if not included or any(low <= one.partition <= high for low, high in included)
    ]
    return [
        OpenTransactionOut(
            topic=one.topic,
            partition=one.partition,
            messages=one.messages,
            stable_offset=one.stable_offset,
            since=to_datetime(one.since_ms),
            read_at=to_datetime(one.read_ms),
            sentence=describe_open_transaction(
                one, format_time(one.since_ms), format_time(one.read_ms), policy.isolation_level
            ),
        )
        for one in sorted(found, key=lambda one: (-one.messages, one.topic, one.partition))
    ]
