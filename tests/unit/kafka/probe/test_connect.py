"""What a client's errors and a broker's API versions are read as."""

from __future__ import annotations

import logging

from lagscale.kafka.probe.connect import (
    ApiVersionLogHandler,
    infer_kafka_version,
    list_group_kinds,
)


def test_a_broker_s_version_is_told_by_what_it_knows() -> None:
    def read_api_versions(*lines: str) -> dict[int, tuple[int, int]]:
        listening = ApiVersionLogHandler()
        for line in lines:
            listening.handle(logging.makeLogRecord({"msg": "%s", "args": (line,)}))
        return listening.apis

    old = read_api_versions(
        "APIVERSION [x]:   ApiKey Fetch (1) Versions 0..11", "APIVERSION   ApiKey AlterPartition (45) Versions 0..0"
    )
    new = read_api_versions(
        "APIVERSION ApiKey Fetch (1) Versions 4..18",
        "APIVERSION ApiKey ConsumerGroupHeartbeat (68) Versions 0..1",
        "APIVERSION ApiKey DescribeTopicPartitions (75) Versions 0..0",
        "another line with Fetch (1)",
    )
    assert (infer_kafka_version(old), list_group_kinds(old)) == ("2.4", ["classic"])
    assert (infer_kafka_version(new), list_group_kinds(new)) == ("4.0", ["classic", "consumer"])
    assert infer_kafka_version(new | {78: (1, 1), 76: (0, 1)}) == "4.1"
    assert (infer_kafka_version({}), list_group_kinds({})) == (None, [])
