"""Sample objects that `up` registers: one tenant, one cluster, and one monitor of an existing topic."""

from __future__ import annotations

import math

import httpx
from confluent_kafka import KafkaError, KafkaException

from devstack.clients import Admin, Kafka

TENANT, NAMESPACE, CLUSTER, MONITOR = "dev", "default", "local", "orders"
_TOPIC, _GROUP, _PARTITIONS = "orders", "orders-workers", 3
_POLICY = {"lagThreshold": 100, "sustainSeconds": 10}


def build_policy(tick_seconds: float) -> dict[str, int]:
    """The policy of the monitor: it is sampled each second, or at each tick if that is longer."""
    return {**_POLICY, "samplingInterval": max(1, math.ceil(tick_seconds))}


def register(admin: Admin, bootstrap: str, tick_seconds: float) -> None:
    """Create the topic and register the objects over REST, unless the monitor exists; always set the cluster's address.

    Raises:
        RuntimeError: the API rejected a request; with its response.
        KafkaException: the broker rejected the topic.
    """
    create_topic(bootstrap, _TOPIC)
    cluster = {"name": CLUSTER, "bootstrapServers": [bootstrap]}
    if admin.http.get(f"/tenants/{TENANT}/monitors/{MONITOR}").status_code != httpx.codes.NOT_FOUND:
        # Changes by the user stay; but the port of the broker may be another one now.
        admin.put(f"/tenants/{TENANT}/clusters/{CLUSTER}", cluster)
        return
    admin.put(f"/tenants/{TENANT}", {"name": TENANT})
    admin.post(f"/tenants/{TENANT}/bindings", {"namespace": NAMESPACE})
    admin.put(f"/tenants/{TENANT}/clusters/{CLUSTER}", cluster)
    policy = build_policy(tick_seconds)
    monitor = {"name": MONITOR, "cluster": CLUSTER, "consumerGroup": _GROUP, "topics": [_TOPIC], "policy": policy}
    admin.put(f"/tenants/{TENANT}/monitors/{MONITOR}", monitor)


def create_topic(bootstrap: str, topic: str) -> None:
    """Create a topic if it does not exist."""
    try:
        Kafka(bootstrap).create_topic(topic, _PARTITIONS)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
