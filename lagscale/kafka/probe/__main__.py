"""`python -m lagscale.kafka.probe`: probes one cluster and ends. The request comes on stdin, the result goes to stdout.

A process of its own: the client library can abort its process when a broker answers out of order, a name lookup can
hang, and whoever registers a cluster chooses what answers. None of that may affect the service that asks.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

from confluent_kafka import KafkaException
from pydantic import TypeAdapter

from lagscale.domain.state_codes import StateCode
from lagscale.errors import TokenUnavailable
from lagscale.kafka.addresses import ADDRESS_REFUSED, AddressRules
from lagscale.kafka.client import FeatureMissing, build_client_config
from lagscale.kafka.probe.access import AccessChecker, describe_principal
from lagscale.kafka.probe.connect import (
    SETTINGS_REJECTED,
    ApiVersions,
    ProbeClient,
    check_listeners,
    infer_kafka_version,
    list_group_kinds,
    probe_addresses,
    summarize_failure,
)
from lagscale.kafka.probe.result import AddressResult, ProbeRequest, ProbeResult
from lagscale.kafka.security import uses_pod_role
from lagscale.kafka.tokens import TokenSource, build_token_fetcher

_MAX_NAMES = 50
#: The share of the time for connecting to addresses; access checks have the rest.
_ADDRESS_TIME_SHARE = 0.5
_MAX_MESSAGE_BYTES = 16_000_000
_MAX_TOPIC_NAMES = 20_000
_POD_ROLE_UNAVAILABLE = "only the scraper can use the role of its pod; see the state of the cluster once it is polled"
_KERBEROS_UNAVAILABLE = (
    "The API's Kafka client is built without Kerberos and cannot probe; see the state of the cluster once a scraper with "
    "Kerberos polls it."
)


def main() -> int:
    """Answer one request."""
    request = TypeAdapter(ProbeRequest).validate_json(sys.stdin.buffer.read())
    began = time.monotonic()
    result = ProbeResult()
    # If something hangs, the result so far is reported.
    thread = threading.Thread(target=probe_cluster, args=(request, result), daemon=True)
    thread.start()
    thread.join(request.seconds)
    result.seconds = round(time.monotonic() - began, 3)
    sys.stdout.buffer.write(TypeAdapter(ProbeResult).dump_json(result))
    sys.stdout.flush()
    # Threads that hang in a lookup, and those of the client, end with the process.
    os._exit(0)


def probe_cluster(request: ProbeRequest, result: ProbeResult) -> None:
    """Fill the result step by step, so that a timeout leaves what was found before."""
    until = time.monotonic() + request.seconds - 0.3
    rules = AddressRules.from_text(request.rules)
    result.problem, result.text = StateCode.TIMEOUT, "The request to the cluster timed out."
    config = _build_config(request, rules, result)
    if config is None:
        return
    # The peer is not trusted: one response must not fill the memory.
    config["receive.message.max.bytes"] = _MAX_MESSAGE_BYTES
    apis: dict[int, tuple[int, int]] = {}
    servers = list(request.bootstrap)
    if request.each_address:
        share = time.monotonic() + request.seconds * _ADDRESS_TIME_SHARE
        servers = probe_addresses(config, servers, rules, until=share, result=result, apis=apis)
        if not servers:
            result.problem, result.text = summarize_failure(result.addresses)
            return
    try:
        probe_client = ProbeClient(config, servers, rules)
    except (KafkaException, ValueError, TypeError, RuntimeError):
        result.problem, result.text = StateCode.SETTINGS_REFUSED, SETTINGS_REJECTED
        return
    try:
        listeners = [AddressResult(f"{host}:{port}", number) for number, host, port in probe_client.brokers(until)]
    except KafkaException:
        # The client may have left the server for an advertised listener before the server answered.
        listeners = [AddressResult(address) for address in probe_client.list_refused_listeners(servers)]
        if not listeners:
            result.problem, result.text = probe_client.explain_failure()
            if probe_client.guard.refused():
                result.problem, result.text = StateCode.ADDRESS_REFUSED, f"A bootstrap server {ADDRESS_REFUSED}."
            return
    if check_listeners(listeners, rules, until, result, request.each_address) or probe_client.guard.refused():
        result.problem = StateCode.ADDRESS_REFUSED
        result.text = f"A listener that the brokers advertise {ADDRESS_REFUSED}."
        return
    apis = {**probe_client.api_versions.apis, **apis}
    _check_access(request, probe_client, servers[0], apis=apis, until=until, result=result)


def _build_config(request: ProbeRequest, rules: AddressRules, result: ProbeResult) -> dict[str, Any] | None:
    """The client's settings, with a token if the cluster uses one; None, and the problem in the result, if impossible."""
    provide_token = None
    try:
        make = build_token_fetcher(request.security, request.secrets, rules)
        if make is not None:
            if uses_pod_role(request.security):
                raise TokenUnavailable(_POD_ROLE_UNAVAILABLE)
            source = TokenSource(make, tenant=0)
            source.renew()
            source.token()
            provide_token = source.provide_token
        return build_client_config(
            request.bootstrap, request.security, request.secrets, request.properties, oauth_cb=provide_token
        )
    except TokenUnavailable as missing:
        result.problem, result.text = StateCode.TOKEN_UNAVAILABLE, f"No access token available: {missing.message}."
    except FeatureMissing:
        result.problem, result.text = StateCode.MECHANISM_MISSING, _KERBEROS_UNAVAILABLE
    except ValueError:
        result.problem, result.text = StateCode.SETTINGS_REFUSED, SETTINGS_REJECTED
    return None


def _check_access(
    request: ProbeRequest,
    probe_client: ProbeClient,
    server: str,
    *,
    apis: ApiVersions,
    until: float,
    result: ProbeResult,
) -> None:
    result.version, result.group_types = infer_kafka_version(apis), list_group_kinds(apis)
    if request.with_topic_names:
        topic_names = probe_client.admin.list_topics(timeout=max(until - time.monotonic(), 0.2)).topics
        result.topic_names = sorted(str(name) for name in topic_names)[:_MAX_TOPIC_NAMES]
    checker = AccessChecker(probe_client.admin, describe_principal(request.security), server, apis, until)
    result.access_checks = checker.access_checks
    groups = {name: topics[:_MAX_NAMES] for name, topics in list(request.groups.items())[:_MAX_NAMES]}
    checker.check_all(request.topics[:_MAX_NAMES], groups, read_committed=request.read_committed)
    result.topics, result.groups = list(checker.topics.values()), list(checker.groups.values())
    result.problem, result.text = "", ""


if __name__ == "__main__":
    sys.exit(main())
