"""Error codes of the Kafka client -> stored state codes; apart because both the scraper and the probe read it."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaError

from lagscale.domain.state_codes import StateCode

ERROR_STATES: Mapping[int, StateCode] = {
    KafkaError._AUTHENTICATION: StateCode.AUTHENTICATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED: StateCode.AUTHENTICATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM: StateCode.AUTHENTICATION_FAILED,
    KafkaError.ILLEGAL_SASL_STATE: StateCode.AUTHENTICATION_FAILED,
    KafkaError._SSL: StateCode.TLS_FAILED,
    KafkaError._TRANSPORT: StateCode.UNREACHABLE,
    KafkaError._RESOLVE: StateCode.UNREACHABLE,
    KafkaError._ALL_BROKERS_DOWN: StateCode.UNREACHABLE,
    KafkaError._TIMED_OUT: StateCode.TIMEOUT,
    KafkaError._TIMED_OUT_QUEUE: StateCode.TIMEOUT,
    KafkaError.REQUEST_TIMED_OUT: StateCode.TIMEOUT,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: StateCode.AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED: StateCode.AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: StateCode.AUTHORIZATION_FAILED,
    KafkaError.UNKNOWN_TOPIC_OR_PART: StateCode.NO_TOPIC,
}
#: Connection errors that explain a request that only timed out, the most specific first.
ROOT_CAUSES = (StateCode.AUTHENTICATION_FAILED, StateCode.TLS_FAILED, StateCode.UNREACHABLE)
