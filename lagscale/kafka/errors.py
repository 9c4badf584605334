"""Error codes of the Kafka client -> stored state codes; apart because both the scraper and the probe read it."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaError

AUTHENTICATION_FAILED = "authentication_failed"
AUTHORIZATION_FAILED = "authorization_failed"
TLS_FAILED = "tls_failed"
UNREACHABLE = "unreachable"
TIMEOUT = "timeout"
NO_TOPIC = "no_topic"

ERROR_STATES: Mapping[int, str] = {
    KafkaError._AUTHENTICATION: AUTHENTICATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED: AUTHENTICATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM: AUTHENTICATION_FAILED,
    KafkaError.ILLEGAL_SASL_STATE: AUTHENTICATION_FAILED,
    KafkaError._SSL: TLS_FAILED,
    KafkaError._TRANSPORT: UNREACHABLE,
    KafkaError._RESOLVE: UNREACHABLE,
    KafkaError._ALL_BROKERS_DOWN: UNREACHABLE,
    KafkaError._TIMED_OUT: TIMEOUT,
    KafkaError._TIMED_OUT_QUEUE: TIMEOUT,
    KafkaError.REQUEST_TIMED_OUT: TIMEOUT,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED: AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: AUTHORIZATION_FAILED,
    KafkaError.UNKNOWN_TOPIC_OR_PART: NO_TOPIC,
}
#: Connection errors that explain a request that only timed out, the most specific first.
ROOT_CAUSES = (AUTHENTICATION_FAILED, TLS_FAILED, UNREACHABLE)
