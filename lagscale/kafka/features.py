"""What this build of the Kafka client can do: the wheel has no Kerberos, a distribution's library has."""

from __future__ import annotations

from functools import cache

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient


class FeatureMissing(ValueError):
    """The build of the Kafka client lacks what the cluster's security needs."""


@cache
def has_feature(feature: str) -> bool:
    """Whether the client was built with it, as in `sasl_gssapi`: librdkafka refuses to be told of what it lacks."""
    try:
        AdminClient({"builtin.features": feature})
    except KafkaException:
        return False
    return True
