"""`python -m lagscale.kafka.probe.__main__`: looks at one cluster and ends. A question comes on stdin, findings go to stdout.

A process of its own: the client's library can abort its process when a broker answers out of turn, a look-up of a name
can hang, and whoever registers a cluster chooses what answers. None of that may touch the service that asks.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

from confluent_kafka import KafkaException
from cryptography import x509
from pydantic import TypeAdapter

from lagscale.errors import TokenUnavailable
from lagscale.kafka.addresses import ADDRESS_REFUSED, AddressRules, split_server
from lagscale.kafka.client import FeatureMissing, build_client_config
from lagscale.kafka.probe.access import AccessChecker, describe_principal
from lagscale.kafka.probe.connect import (
    SETTINGS_REJECTED,
    ApiVersions,
    ProbeClient,
    infer_kafka_version,
    list_group_kinds,
    probe_address,
    resolve_and_connect,
)
from lagscale.kafka.probe.result import AddressResult, ProbeRequest, ProbeResult, ProbeStep, StepOutcome
from lagscale.kafka.security import uses_pod_role
from lagscale.kafka.tokens import TokenSource, build_token_fetcher

_MAX_ADDRESSES = 16
_MAX_NAMES = 50
#: What of the time there is may go to trying addresses; the rights have the rest.
_ADDRESS_TIME_SHARE = 0.5
_ADVERTISED_SECONDS = 1.5
_MAX_MESSAGE_BYTES = 16_000_000
_MAX_TOPIC_NAMES = 20_000
_POD_ROLE_UNAVAILABLE = (
    "the role of the scraper's pod is the scraper's alone; see the cluster's state once it is polled"
)
_KERBEROS_UNAVAILABLE = (
    "The API's Kafka client is built without Kerberos, so it cannot look; see the cluster's state once a scraper that has "
    "it polls the cluster."
)
_TIMED_OUT = ProbeStep(StepOutcome.FAILED, "This took too long.")


def main() -> int:
    """Answer one question."""
    request = TypeAdapter(ProbeRequest).validate_json(sys.stdin.buffer.read())
    began = time.monotonic()
    result = ProbeResult()
    # Whatever hangs, what was found until then is told.
    thread = threading.Thread(target=probe_cluster, args=(request, result), daemon=True)
    thread.start()
    thread.join(request.seconds)
    result.seconds = round(time.monotonic() - began, 3)
    sys.stdout.buffer.write(TypeAdapter(ProbeResult).dump_json(result))
    sys.stdout.flush()
    # Threads that hang in a look-up, and the client's own, end with the process.
    os._exit(0)


def probe_cluster(request: ProbeRequest, result: ProbeResult) -> None:
    """Fill the findings, step by step."""
    until = time.monotonic() + request.seconds - 0.3
    rules = AddressRules.from_text(request.rules)
    result.problem, result.text = "timeout", "The cluster did not answer in time."
    config = _build_config(request, rules, result)
    if config is None:
        return
    # Whoever answers there is not trusted: one answer may not fill the memory.
    config["receive.message.max.bytes"] = _MAX_MESSAGE_BYTES
    apis: dict[int, tuple[int, int]] = {}
    servers = list(request.bootstrap)
    if request.each_address:
        share = time.monotonic() + request.seconds * _ADDRESS_TIME_SHARE
        servers = _probe_addresses(config, servers, rules, until=share, result=result, apis=apis)
        if not servers:
            result.problem, result.text = _summarize_failure(result.addresses)
            return
    try:
        probe_client = ProbeClient(config, servers, rules)
    except (KafkaException, ValueError, TypeError, RuntimeError):
        result.problem, result.text = "settings_refused", SETTINGS_REJECTED
        return
    try:
        listeners = [AddressResult(f"{host}:{port}", number) for number, host, port in probe_client.brokers(until)]
    except KafkaException:
        # The client may have left the server for a listener that it advertises before that answered.
        listeners = [AddressResult(address) for address in probe_client.list_refused_listeners(servers)]
        if not listeners:
            result.problem, result.text = probe_client.explain_failure()
            if probe_client.guard.refused():
                result.problem, result.text = "address_refused", f"A bootstrap server {ADDRESS_REFUSED}."
            return
    if _check_listeners(listeners, rules, until, result, request.each_address) or probe_client.guard.refused():
        result.problem = "address_refused"
        result.text = f"A listener that the brokers advertise {ADDRESS_REFUSED}."
        return
    _check_access(
        request, probe_client, servers[0], {**probe_client.api_versions.apis, **apis}, until=until, result=result
    )


def _build_config(request: ProbeRequest, rules: AddressRules, result: ProbeResult) -> dict[str, Any] | None:
    """The client's settings, with a token where the cluster wants one; None when there can be none, which is told."""
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
        result.problem, result.text = "token_unavailable", f"No access token can be had: {missing.message}."
    except FeatureMissing:
        result.problem, result.text = "mechanism_missing", _KERBEROS_UNAVAILABLE
    except ValueError:
        result.problem, result.text = "settings_refused", SETTINGS_REJECTED
    return None


def _check_access(
    request: ProbeRequest,
    probe_client: ProbeClient,
    server: str,
    apis: ApiVersions,
    *,
    until: float,
    result: ProbeResult,
) -> None:
    result.version, result.group_types = infer_kafka_version(apis), list_group_kinds(apis)
    if request.with_topic_names:
        topic_names = probe_client.admin.list_topics(timeout=max(until - time.monotonic(), 0.2)).topics
        result.topic_names = sorted(str(name) for name in topic_names)[:_MAX_TOPIC_NAMES]
    access_checks = AccessChecker(
        probe_client.admin, describe_principal(request.security, _read_subject), server, apis, until
    )
    result.access_checks = access_checks.access_checks
    groups = dict(list(request.groups.items())[:_MAX_NAMES])
    access_checks.check_all(
        request.topics[:_MAX_NAMES], {name: group_topics[:_MAX_NAMES] for name, group_topics in groups.items()}
    )
    result.topics, result.groups = list(access_checks.topics.values()), list(access_checks.groups.values())
    result.problem, result.text = "", ""


def _probe_addresses(
    config: dict[str, Any],
    servers: Sequence[str],
    rules: AddressRules,
    *,
    until: float,
    result: ProbeResult,
    apis: dict[int, tuple[int, int]],
) -> list[str]:
    """Try every bootstrap server alone; those that answered."""
    futures: list[tuple[str, Future[tuple[AddressResult, ApiVersions]]]] = []
    threads = ThreadPoolExecutor(_MAX_ADDRESSES)
    for server in servers[:_MAX_ADDRESSES]:
        futures.append((server, threads.submit(probe_address, config, server, rules, until)))
    reachable: list[str] = []
    for server, future in futures:
        address_result = AddressResult(server, resolved=_TIMED_OUT)
        try:
            address_result, api_versions = future.result(max(until + 0.2 - time.monotonic(), 0.0))
            apis.update(api_versions)
        except FutureTimeout:
            pass
        result.addresses.append(address_result)
        if address_result.answered.outcome is StepOutcome.OK:
            reachable.append(server)
    result.addresses += [AddressResult(server) for server in servers[_MAX_ADDRESSES:]]
    return reachable


def _check_listeners(
    listeners: list[AddressResult], rules: AddressRules, until: float, result: ProbeResult, each_address: bool
) -> bool:
    """Look where the advertised listeners lead; whether one is refused."""
    # Those that are refused in any case come first: all of them are judged, and no more than can be read is told.
    listeners.sort(key=lambda address_result: not rules.refuses(*split_server(address_result.address)))
    result.advertised = tried = listeners[:_MAX_ADDRESSES]
    threads = ThreadPoolExecutor(_MAX_ADDRESSES)
    share = min(until, time.monotonic() + _ADVERTISED_SECONDS)
    futures = [
        threads.submit(resolve_and_connect, address_result, rules, share)
        for address_result in tried
        if each_address or rules.limited
    ]
    for address_result, future in zip(tried, futures, strict=False):
        try:
            future.result(max(share + 0.2 - time.monotonic(), 0.0))
        except FutureTimeout:
            address_result.resolved = (
                _TIMED_OUT if address_result.resolved.outcome is StepOutcome.NOT_TRIED else address_result.resolved
            )
    return any(ADDRESS_REFUSED in address_result.resolved.text for address_result in tried)


def _summarize_failure(addresses: Sequence[AddressResult]) -> tuple[str, str]:
    """The state of a cluster none of whose addresses answered: of the one that came the farthest."""
    for state, step in (
        ("authentication_failed", "authenticated"),
        ("tls_failed", "tls"),
        ("unreachable", "answered"),
        ("unreachable", "connected"),
        ("unreachable", "resolved"),
    ):
        for address_result in addresses:
            found: ProbeStep = getattr(address_result, step)
            if found.outcome is StepOutcome.FAILED:
                named = {SETTINGS_REJECTED: "settings_refused", f"This address {ADDRESS_REFUSED}.": "address_refused"}
                return named.get(found.text, state), found.text
    return "timeout", "The cluster did not answer in time."


def _read_subject(certificate: str) -> str:
    try:
        return x509.load_pem_x509_certificate(certificate.encode()).subject.rfc4514_string()
    except ValueError:
        return "<subject of the certificate>"


if __name__ == "__main__":
    sys.exit(main())
