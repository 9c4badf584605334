"""What a newcomer finds registered after `up`: one tenant, one cluster, one monitor of a topic that exists."""

from __future__ import annotations

import httpx
from confluent_kafka import KafkaError, KafkaException

from devstack.clients import Admin, Kafka

TENANT, NAMESPACE, CLUSTER, MONITOR = "dev", "default", "local", "orders"
_TOPIC, _GROUP, _PARTITIONS = "orders", "orders-workers", 3
_POLICY = {"lagThreshold": 100, "sustainSeconds": 10, "samplingInterval": 1}


def register(admin: Admin, bootstrap: str) -> None:
    """Register it over REST, and create the topic, unless the monitor is there; the cluster's address is always set.

    Raises:
        RuntimeError: the API refused something; with its answer.
        KafkaException: the broker refused the topic.
    """
    create_topic(bootstrap, _TOPIC)
    cluster = {"name": CLUSTER, "bootstrapServers": [bootstrap]}
    if admin.http.get(f"/tenants/{TENANT}/monitors/{MONITOR}").status_code != httpx.codes.NOT_FOUND:
        # What a person changed since stays; but the broker may have come back on another port.
        admin.put(f"/tenants/{TENANT}/clusters/{CLUSTER}", cluster)
        return
    admin.put(f"/tenants/{TENANT}", {"name": TENANT})
    admin.post(f"/tenants/{TENANT}/bindings", {"namespace": NAMESPACE})
    admin.put(f"/tenants/{TENANT}/clusters/{CLUSTER}", cluster)
    monitor = {"name": MONITOR, "cluster": CLUSTER, "consumerGroup": _GROUP, "topics": [_TOPIC], "policy": _POLICY}
    admin.put(f"/tenants/{TENANT}/monitors/{MONITOR}", monitor)


def create_topic(bootstrap: str, topic: str) -> None:
    """Create a topic unless it is there."""
    try:
        Kafka(bootstrap).create_topic(topic, _PARTITIONS)
    except KafkaException as refusal:
        if refusal.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
