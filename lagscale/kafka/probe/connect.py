"""Connects to the addresses of a cluster step by step: name, TCP, TLS, SASL, first response. Texts hold no secret."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from logging import Handler, Logger, LogRecord
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from lagscale.domain.state_codes import StateCode
from lagscale.kafka.addresses import ADDRESS_REFUSED, AddressRefused, AddressRules, split_server
from lagscale.kafka.errors import (
    SASL_REQUIRED,
    TLS_REQUIRED,
    classify_error,
    explain_sasl_error,
    explain_tls_error,
    requires_tls,
)
from lagscale.kafka.probe.result import AddressResult, ProbeResult, ProbeStep, StepOutcome
from lagscale.kafka.resolver_guard import BROKERS_ONLY_TOPIC, open_admin

OK = ProbeStep(StepOutcome.OK)
#: Addresses that are tried and reported.
_MAX_ADDRESSES = 16
_ADVERTISED_SECONDS = 1.5
#: A listener that closed the connection answers at once, whether it uses TLS or not.
_TLS_SECONDS = 0.3
_TIMED_OUT = ProbeStep(StepOutcome.FAILED, "Timed out.")
_NOT_USED = ProbeStep(StepOutcome.NOT_USED)
_POLL_SECONDS = 0.05
#: After all addresses failed, the client retries each once within this time.
_DOWN_SECONDS = 1.5
_API = re.compile(r"ApiKey \S+ \((\d+)\) Versions (\d+)\.\.(\d+)")
#: Kafka API key -> the first version with it.
_API_SINCE_VERSION = ((44, "2.3"), (45, "2.4"), (48, "2.6"), (60, "2.8"), (65, "3.0"), (71, "3.7"), (75, "3.8"))
_FETCH, _SHARE_FETCH = 1, 78
#: Group type -> the API key that only brokers with such groups have.
_GROUP_KIND_APIS = (("consumer", 68), ("share", 76), ("streams", 88))

_NAME_NOT_RESOLVED = "Host name not resolved; check its spelling and the DNS server."
_CONNECTION_TIMED_OUT = "Connection timed out; check the firewall and network policies."
_CONNECTION_REFUSED = "Connection refused: nothing listens on this port, or the host is unreachable."
SETTINGS_REJECTED = "The Kafka client rejected the cluster's settings; check protocol, certificate and key."
_NOT_KAFKA = "The listener does not speak the Kafka protocol; check the security protocol and the port."
#: Phrase of a client error -> text, for addresses without a connection.
_UNREACHABLE_TEXTS = (
    ("Failed to resolve", _NAME_NOT_RESOLVED),
    ("Connection setup timed out", _CONNECTION_TIMED_OUT),
    ("Connect to", _CONNECTION_REFUSED),
)

ApiVersions = Mapping[int, tuple[int, int]]


class ApiVersionLogHandler(Handler):
    """Reads from the client's log which API versions the broker supports; other lines are dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.apis: dict[int, tuple[int, int]] = {}

    def emit(self, record: LogRecord) -> None:
        """Record the API versions if the line has some."""
        found = _API.search(record.getMessage())
        if found is not None:
            self.apis[int(found[1])] = int(found[2]), int(found[3])


class ProbeClient:
    """A client of one or several addresses, with the errors and API versions of its connections."""

    def __init__(self, config: Mapping[str, Any], servers: Sequence[str], rules: AddressRules) -> None:
        """Open the client without connecting.

        Raises:
            KafkaException, ValueError, TypeError: it rejects the settings.
        """
        self.api_versions = ApiVersionLogHandler()
        self._config = config
        self._errors: list[KafkaError] = []
        self._threads = ThreadPoolExecutor(1)
        log = Logger("probe")  # One client's own, so that its lines do not mix with others'.
        log.addHandler(self.api_versions)
        settings = {**config, "bootstrap.servers": ",".join(servers), "debug": "feature", "log_level": 7}
        self.admin, self.guard = open_admin({**settings, "error_cb": self._errors.append}, rules, log)

    def brokers(self, until: float) -> list[tuple[int, str, int]]:
        """Id, host and port of each broker, as advertised.

        Raises:
            KafkaException: no response, or the credentials or the certificate were rejected.
        """
        future = self._threads.submit(
            self.admin.list_topics, BROKERS_ONLY_TOPIC, timeout=max(until - time.monotonic(), 0.2)
        )
        down_since: float | None = None
        while not future.done():
            # Callbacks run in poll. A rejected login is rejected again, so there is no wait for the timeout.
            self.admin.poll(_POLL_SECONDS)
            final = {StateCode.AUTHENTICATION_FAILED, StateCode.TLS_FAILED}
            refused = [error for error in self._errors if classify_error(error) in final]
            if refused and not future.done():
                raise KafkaException(refused[0])
            down = [error for error in self._errors if error.code() == KafkaError._ALL_BROKERS_DOWN]
            down_since = down_since or (time.monotonic() if down else None)
            if down_since is not None and time.monotonic() - down_since > _DOWN_SECONDS and not future.done():
                raise KafkaException(down[0])
        answer = future.result()
        self.admin.poll(0)
        return [(int(one.id), str(one.host), int(one.port)) for one in answer.brokers.values()]

    def list_refused_listeners(self, servers: Sequence[str]) -> list[str]:
        """Refused addresses other than the servers: advertised listeners, which means that a server has answered."""
        own = {"{}:{}".format(*split_server(server)) for server in servers}
        return [address for address in self.guard.refused() if address not in own]

    def explain_failure(self) -> tuple[str, str]:
        """State and text: why there was no response."""
        failures = [(classify_error(error) or StateCode.UNREACHABLE, error.str()) for error in self._errors]
        for found, line in failures:
            if found == StateCode.AUTHENTICATION_FAILED:
                return found, explain_sasl_error(line)
        for found, line in failures:
            if found == StateCode.TLS_FAILED:
                return found, explain_tls_error(line, self._config)
        for phrase, text in _UNREACHABLE_TEXTS:
            if any(phrase in line for _, line in failures):
                return StateCode.UNREACHABLE, text
        if any(found == StateCode.UNREACHABLE for found, _ in failures):
            return StateCode.UNREACHABLE, _NOT_KAFKA
        return StateCode.TIMEOUT, "Request timed out; check the security protocol and the port."


def probe_address(
    config: Mapping[str, Any], address: str, rules: AddressRules, until: float
) -> tuple[AddressResult, ApiVersions]:
    """All steps to one bootstrap server, and the API versions of its broker."""
    address_result = AddressResult(address)
    if not resolve_and_connect(address_result, rules, until):
        return address_result, {}
    tls, sasl = _detect_tls_and_sasl(config)
    address_result.tls, address_result.authenticated = (ProbeStep() if used else _NOT_USED for used in (tls, sasl))
    passed = (OK if tls else _NOT_USED, OK if sasl else _NOT_USED)
    try:
        probe_client = ProbeClient(config, [address], rules)
    except (KafkaException, ValueError, TypeError, RuntimeError):
        address_result.answered = ProbeStep(StepOutcome.FAILED, SETTINGS_REJECTED)
        return address_result, {}
    try:
        probe_client.brokers(until)
    except KafkaException:
        kind, text = probe_client.explain_failure()
        failed = ProbeStep(StepOutcome.FAILED, text)
        if probe_client.list_refused_listeners([address]):
            address_result.tls, address_result.authenticated, address_result.answered = *passed, OK
        elif kind == StateCode.TLS_FAILED:
            address_result.tls = failed
        elif kind == StateCode.AUTHENTICATION_FAILED:
            address_result.tls, address_result.authenticated = passed[0], failed
        elif text == _NOT_KAFKA and _requires_tls(config, address, rules, until):
            address_result.tls = ProbeStep(StepOutcome.FAILED, TLS_REQUIRED)
        elif text == _NOT_KAFKA and not sasl and probe_client.api_versions.apis:
            address_result.tls, address_result.answered = passed[0], ProbeStep(StepOutcome.FAILED, SASL_REQUIRED)
        else:
            address_result.answered = failed
    else:
        address_result.tls, address_result.authenticated, address_result.answered = *passed, OK
    return address_result, probe_client.api_versions.apis


def _requires_tls(config: Mapping[str, Any], address: str, rules: AddressRules, until: float) -> bool:
    # After a silent listener no time is left.
    seconds = min(until - time.monotonic(), _TLS_SECONDS)
    return seconds > 0 and requires_tls(config, *split_server(address), rules, seconds)


def resolve_and_connect(address_result: AddressResult, rules: AddressRules, until: float) -> bool:
    """Resolve the name and open a TCP connection; return whether both succeeded."""
    host, port = split_server(address_result.address)
    try:
        rules.resolve(host, port)
        address_result.resolved = OK
        rules.connect(host, port, max(until - time.monotonic(), 0.2)).close()
        address_result.connected = OK
        return True
    except AddressRefused as refused:
        address_result.resolved = ProbeStep(StepOutcome.FAILED, f"This host {refused}.")
    except OSError as failed:
        if address_result.resolved is not OK:
            address_result.resolved = ProbeStep(StepOutcome.FAILED, _NAME_NOT_RESOLVED)
        else:
            text = _CONNECTION_TIMED_OUT if isinstance(failed, TimeoutError) else _CONNECTION_REFUSED
            address_result.connected = ProbeStep(StepOutcome.FAILED, text)
    return False


def probe_addresses(
    config: dict[str, Any],
    servers: Sequence[str],
    rules: AddressRules,
    *,
    until: float,
    result: ProbeResult,
    apis: dict[int, tuple[int, int]],
) -> list[str]:
    """Try each bootstrap server by itself; return those that answered."""
    threads = ThreadPoolExecutor(_MAX_ADDRESSES)
    tried = servers[:_MAX_ADDRESSES]
    futures = [threads.submit(probe_address, config, server, rules, until) for server in tried]
    reachable: list[str] = []
    for server, future in zip(tried, futures, strict=True):
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


def check_listeners(
    listeners: list[AddressResult], rules: AddressRules, until: float, result: ProbeResult, each_address: bool
) -> bool:
    """Connect to the advertised listeners; return whether one is refused."""
    # Refused ones come first: all are checked, but only some are reported.
    listeners.sort(key=lambda address_result: not rules.refuses(*split_server(address_result.address)))
    result.advertised = tried = listeners[:_MAX_ADDRESSES]
    threads = ThreadPoolExecutor(_MAX_ADDRESSES)
    share = min(until, time.monotonic() + _ADVERTISED_SECONDS)
    connecting = tried if each_address or rules.limited else []
    futures = [threads.submit(resolve_and_connect, address_result, rules, share) for address_result in connecting]
    for address_result, future in zip(connecting, futures, strict=True):
        try:
            future.result(max(share + 0.2 - time.monotonic(), 0.0))
        except FutureTimeout:
            if address_result.resolved.outcome is StepOutcome.NOT_TRIED:
                address_result.resolved = _TIMED_OUT
    return any(ADDRESS_REFUSED in address_result.resolved.text for address_result in tried)


def summarize_failure(addresses: Sequence[AddressResult]) -> tuple[str, str]:
    """State and text of a cluster without any answer: those of the address that came farthest."""
    for state, step in (
        (StateCode.AUTHENTICATION_FAILED, "authenticated"),
        (StateCode.TLS_FAILED, "tls"),
        (StateCode.UNREACHABLE, "answered"),
        (StateCode.UNREACHABLE, "connected"),
        (StateCode.UNREACHABLE, "resolved"),
    ):
        for address_result in addresses:
            found: ProbeStep = getattr(address_result, step)
            if found.outcome is StepOutcome.FAILED:
                named = {
                    SETTINGS_REJECTED: StateCode.SETTINGS_REFUSED,
                    f"This host {ADDRESS_REFUSED}.": StateCode.ADDRESS_REFUSED,
                }
                return named.get(found.text, state), found.text
    return StateCode.TIMEOUT, "The request to the cluster timed out."


def infer_kafka_version(apis: ApiVersions) -> str | None:
    """Minimum Kafka version with these APIs; None without any."""
    found = None
    for api, version in _API_SINCE_VERSION:
        found = version if api in apis else found
    # These versions removed the oldest versions of the APIs.
    if apis.get(_FETCH, (0, 0))[0] >= 4:
        found = "4.0"
    if apis.get(_SHARE_FETCH, (0, 0))[0] >= 1:
        found = "4.1"
    return found


def list_group_kinds(apis: ApiVersions) -> list[str]:
    """Group types that the broker supports; empty if unknown."""
    return ["classic", *(kind for kind, api in _GROUP_KIND_APIS if api in apis)] if apis else []


def _detect_tls_and_sasl(config: Mapping[str, Any]) -> tuple[bool, bool]:
    protocol = str(config.get("security.protocol", "PLAINTEXT"))
    return protocol.endswith("SSL"), protocol.startswith("SASL_")
