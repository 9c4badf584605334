"""Tries one address of a cluster step by step: name, TCP, TLS, SASL, a first answer. Texts hold no secret."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from logging import Handler, Logger, LogRecord
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from lagscale.domain.state_codes import StateCode
from lagscale.kafka.addresses import AddressRefused, AddressRules, split_server
from lagscale.kafka.errors import ERROR_STATES
from lagscale.kafka.probe.result import AddressResult, ProbeStep, StepOutcome
from lagscale.kafka.resolver_guard import open_admin

OK = ProbeStep(StepOutcome.OK)
_NOT_USED = ProbeStep(StepOutcome.NOT_USED)
#: A space is in no topic's name, so the answer tells of brokers only, and nothing is created.
_BROKERS_ONLY_TOPIC = "no topic"
_POLL_SECONDS = 0.05
#: All addresses having failed, each has been tried once more within this.
_DOWN_SECONDS = 1.5
_API = re.compile(r"ApiKey \S+ \((\d+)\) Versions (\d+)\.\.(\d+)")
_MECHANISMS = re.compile(r"supported mechanisms: ([A-Z0-9,_-]{1,100})")
_ALERTS = ("bad certificate", "certificate required", "certificate unknown", "unknown ca", "certificate expired",
           "handshake failure", "unsupported certificate", "certificate revoked")  # fmt: skip
#: API of Kafka -> the first version whose brokers know it.
_API_SINCE_VERSION = ((44, "2.3"), (45, "2.4"), (48, "2.6"), (60, "2.8"), (65, "3.0"), (71, "3.7"), (75, "3.8"))
_FETCH, _SHARE_FETCH = 1, 78
#: Kind of group -> the API that only brokers with such groups know.
_GROUP_KIND_APIS = (("consumer", 68), ("share", 76), ("streams", 88))

_NAME_NOT_RESOLVED = "This name has no address here; check its spelling, and the name server."
_CONNECTION_TIMED_OUT = "Nobody answers at this address; check the firewall and the network policy."
_CONNECTION_REFUSED = "Nobody listens on this port, or the network does not lead there."
#: What the client says of an address that it could not even connect to.
_UNREACHABLE_TEXTS = (
    ("Failed to resolve", _NAME_NOT_RESOLVED),
    ("Connection setup timed out", _CONNECTION_TIMED_OUT),
    ("Connect to", _CONNECTION_REFUSED),
)

ApiVersions = Mapping[int, tuple[int, int]]


class ApiVersionLogHandler(Handler):
    """Hears from the client which requests the broker knows; nothing else of its log is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.apis: dict[int, tuple[int, int]] = {}

    def emit(self, record: LogRecord) -> None:
        """Keep the line if it tells of a request."""
        found = _API.search(record.getMessage())
        if found is not None:
            self.apis[int(found[1])] = int(found[2]), int(found[3])


class ProbeClient:
    """A client of one or several addresses, and what its connections told."""

    def __init__(self, config: Mapping[str, Any], servers: Sequence[str], rules: AddressRules) -> None:
        """Open the client; nothing is connected yet.

        Raises:
            KafkaException, ValueError, TypeError: it refuses the settings.
        """
        self.api_versions = ApiVersionLogHandler()
        self._errors: list[KafkaError] = []
        self._threads = ThreadPoolExecutor(1)
        log = Logger("probe")  # One client's own, so that its lines do not mix with others'.
        log.addHandler(self.api_versions)
        settings = {**config, "bootstrap.servers": ",".join(servers), "debug": "feature", "log_level": 7}
        self.admin, self.guard = open_admin({**settings, "error_cb": self._errors.append}, rules, log)

    def brokers(self, until: float) -> list[tuple[int, str, int]]:
        """Number, host and port of each broker, as advertised.

        Raises:
            KafkaException: nobody answered, or the credentials or the certificate were refused.
        """
        future = self._threads.submit(
            self.admin.list_topics, _BROKERS_ONLY_TOPIC, timeout=max(until - time.monotonic(), 0.2)
        )
        down_since: float | None = None
        while not future.done():
            # Errors and lines of the log are served here. A refusal will be one again, so nothing is waited for.
            self.admin.poll(_POLL_SECONDS)
            refused = [
                error
                for error in self._errors
                if _classify_error(error) in {StateCode.AUTHENTICATION_FAILED, StateCode.TLS_FAILED}
            ]
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
        """What was refused beside the servers themselves: listeners that they advertise, so one of them has answered."""
        own = {"{}:{}".format(*split_server(server)) for server in servers}
        return [address for address in self.guard.refused() if address not in own]

    def explain_failure(self) -> tuple[str, str]:
        """Named state and text of why nobody answered."""
        failures = [(_classify_error(error), error.str()) for error in self._errors]
        for kind, explain in (
            (StateCode.AUTHENTICATION_FAILED, _explain_sasl_error),
            (StateCode.TLS_FAILED, _explain_tls_error),
        ):
            for found, line in failures:
                if found == kind:
                    return kind, explain(line)
        for phrase, text in _UNREACHABLE_TEXTS:
            if any(phrase in line for _, line in failures):
                return StateCode.UNREACHABLE, text
        if any(found == StateCode.UNREACHABLE for found, _ in failures):
            return (
                StateCode.UNREACHABLE,
                "Something listens there, but does not answer as Kafka does; check the protocol and the port.",
            )
        return StateCode.TIMEOUT, "There was no answer in time; check the protocol and the port."


def probe_address(
    config: Mapping[str, Any], address: str, rules: AddressRules, until: float
) -> tuple[AddressResult, ApiVersions]:
    """Every step to one bootstrap server, and what its broker knows."""
    address_result = AddressResult(address)
    if not resolve_and_connect(address_result, rules, until):
        return address_result, {}
    tls, sasl = _detect_tls_and_sasl(config)
    address_result.tls, address_result.authenticated = (
        (ProbeStep() if tls else _NOT_USED),
        (ProbeStep() if sasl else _NOT_USED),
    )
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
            address_result.tls, address_result.authenticated = (OK if tls else _NOT_USED), (OK if sasl else _NOT_USED)
            address_result.answered = OK
        elif kind == StateCode.TLS_FAILED:
            address_result.tls = failed
        elif kind == StateCode.AUTHENTICATION_FAILED:
            address_result.tls, address_result.authenticated = (OK if tls else _NOT_USED), failed
        else:
            address_result.answered = failed
    else:
        address_result.tls, address_result.authenticated = (OK if tls else _NOT_USED), (OK if sasl else _NOT_USED)
        address_result.answered = OK
    return address_result, probe_client.api_versions.apis


SETTINGS_REJECTED = "The Kafka client refuses the cluster's settings; check protocol, certificate and key."


def resolve_and_connect(address_result: AddressResult, rules: AddressRules, until: float) -> bool:
    """Resolve and connect, and nothing more; whether both went well."""
    host, port = split_server(address_result.address)
    try:
        rules.resolve(host, port)
    except AddressRefused as refused:
        address_result.resolved = ProbeStep(StepOutcome.FAILED, f"This address {refused}.")
        return False
    except OSError:
        address_result.resolved = ProbeStep(StepOutcome.FAILED, _NAME_NOT_RESOLVED)
        return False
    address_result.resolved = OK
    try:
        rules.connect(host, port, max(until - time.monotonic(), 0.2)).close()
    except AddressRefused as refused:
        address_result.resolved = ProbeStep(StepOutcome.FAILED, f"This address {refused}.")
        return False
    except TimeoutError:
        address_result.connected = ProbeStep(StepOutcome.FAILED, _CONNECTION_TIMED_OUT)
        return False
    except OSError:
        address_result.connected = ProbeStep(StepOutcome.FAILED, _CONNECTION_REFUSED)
        return False
    address_result.connected = OK
    return True


def infer_kafka_version(apis: ApiVersions) -> str | None:
    """The least version of Kafka whose brokers know all this; None where nothing is known."""
    found = None
    for api, version in _API_SINCE_VERSION:
        found = version if api in apis else found
    # Since these versions the oldest forms of the requests are gone.
    if apis.get(_FETCH, (0, 0))[0] >= 4:
        found = "4.0"
    if apis.get(_SHARE_FETCH, (0, 0))[0] >= 1:
        found = "4.1"
    return found


def list_group_kinds(apis: ApiVersions) -> list[str]:
    """Kinds of groups that the broker knows; none where nothing is known."""
    return ["classic", *(kind for kind, api in _GROUP_KIND_APIS if api in apis)] if apis else []


def _detect_tls_and_sasl(config: Mapping[str, Any]) -> tuple[bool, bool]:
    protocol = str(config.get("security.protocol", "PLAINTEXT"))
    return protocol.endswith("SSL"), protocol.startswith("SASL_")


def _classify_error(error: KafkaError) -> str:
    # Alerts of TLS arrive as a lost connection.
    text = error.str()
    if "SSL handshake failed" in text or ("SSL" in text and "alert" in text):
        return StateCode.TLS_FAILED
    return ERROR_STATES.get(error.code(), StateCode.UNREACHABLE)


def _explain_tls_error(line: str) -> str:
    if "PLAINTEXT broker listener" in line or "wrong version number" in line:
        return "The listener does not speak TLS; check the port, or set a protocol without SSL."
    if any(f"alert {name}" in line for name in _ALERTS):
        return (
            "The broker refuses the client's certificate, or asks for one; give `certificate` and `key` that its "
            "authority has signed."
        )
    if "verify failed" in line:
        return (
            "The broker's certificate cannot be verified; give the `ca` that signed it, and set verifyHostname to false "
            "only if it is for another host's name."
        )
    return "TLS fails; check the CA, the client certificate and the port."


def _explain_sasl_error(line: str) -> str:
    offered = _MECHANISMS.search(line)
    if offered is not None:
        return f"The listener does not take this mechanism; it offers {offered[1].strip(',')}."
    if "handshake failed" in line:
        return "The listener does not take SASL; check the port, or set a protocol without SASL."
    return "The broker refuses the credentials; check mechanism, user name and password."
