"""Tries one address of a cluster step by step: name, TCP, TLS, SASL, a first answer. Texts hold no secret."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from logging import Handler, Logger, LogRecord
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from lagscale.kafka.addresses import AddressRefused, AddressRules, split_server
from lagscale.kafka.errors import AUTHENTICATION_FAILED, KINDS, TIMEOUT, TLS_FAILED, UNREACHABLE
from lagscale.kafka.probe.result import AddressSeen, Outcome, Step
from lagscale.kafka.resolver_guard import open_admin

OK = Step(Outcome.OK)
_UNUSED = Step(Outcome.NOT_USED)
#: A space is in no topic's name, so the answer tells of brokers only, and nothing is created.
NO_TOPIC = "no topic"
_LOOK_SECONDS = 0.05
#: All addresses having failed, each has been tried once more within this.
_DOWN_SECONDS = 1.5
_API = re.compile(r"ApiKey \S+ \((\d+)\) Versions (\d+)\.\.(\d+)")
_MECHANISMS = re.compile(r"supported mechanisms: ([A-Z0-9,_-]{1,100})")
_ALERTS = ("bad certificate", "certificate required", "certificate unknown", "unknown ca", "certificate expired",
           "handshake failure", "unsupported certificate", "certificate revoked")  # fmt: skip
#: API of Kafka -> the first version whose brokers know it.
_SINCE = ((44, "2.3"), (45, "2.4"), (48, "2.6"), (60, "2.8"), (65, "3.0"), (71, "3.7"), (75, "3.8"))
_FETCH, _SHARE_FETCH = 1, 78
#: Kind of group -> the API that only brokers with such groups know.
_KINDS = (("consumer", 68), ("share", 76), ("streams", 88))

_NO_NAME = "This name has no address here; check its spelling, and the name server."
_NO_ANSWER = "Nobody answers at this address; check the firewall and the network policy."
_NO_LISTENER = "Nobody listens on this port, or the network does not lead there."
#: What the client says of an address that it could not even connect to.
_PLACES = (
    ("Failed to resolve", _NO_NAME),
    ("Connection setup timed out", _NO_ANSWER),
    ("Connect to", _NO_LISTENER),
)

Apis = Mapping[int, tuple[int, int]]


class Listening(Handler):
    """Hears from the client which requests the broker knows; nothing else of its log is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.apis: dict[int, tuple[int, int]] = {}

    def emit(self, record: LogRecord) -> None:
        """Keep the line if it tells of a request."""
        found = _API.search(record.getMessage())
        if found is not None:
            self.apis[int(found[1])] = int(found[2]), int(found[3])


class Trial:
    """A client of one or several addresses, and what its connections told."""

    def __init__(self, config: Mapping[str, Any], servers: Sequence[str], rules: AddressRules) -> None:
        """Open the client; nothing is connected yet.

        Raises:
            KafkaException, ValueError, TypeError: it refuses the settings.
        """
        self.heard = Listening()
        self._errors: list[KafkaError] = []
        self._threads = ThreadPoolExecutor(1)
        log = Logger("probe")  # One client's own, so that its lines do not mix with others'.
        log.addHandler(self.heard)
        settings = {**config, "bootstrap.servers": ",".join(servers), "debug": "feature", "log_level": 7}
        self.admin, self.guard = open_admin({**settings, "error_cb": self._errors.append}, rules, log)

    def brokers(self, until: float) -> list[tuple[int, str, int]]:
        """Number, host and port of each broker, as advertised.

        Raises:
            KafkaException: nobody answered, or the credentials or the certificate were refused.
        """
        asking = self._threads.submit(self.admin.list_topics, NO_TOPIC, timeout=max(until - time.monotonic(), 0.2))
        down_since: float | None = None
        while not asking.done():
            # Errors and lines of the log are served here. A refusal will be one again, so nothing is waited for.
            self.admin.poll(_LOOK_SECONDS)
            refused = [error for error in self._errors if _kind(error) in {AUTHENTICATION_FAILED, TLS_FAILED}]
            if refused and not asking.done():
                raise KafkaException(refused[0])
            down = [error for error in self._errors if error.code() == KafkaError._ALL_BROKERS_DOWN]
            down_since = down_since or (time.monotonic() if down else None)
            if down_since is not None and time.monotonic() - down_since > _DOWN_SECONDS and not asking.done():
                raise KafkaException(down[0])
        answer = asking.result()
        self.admin.poll(0)
        return [(int(one.id), str(one.host), int(one.port)) for one in answer.brokers.values()]

    def advertised_refused(self, servers: Sequence[str]) -> list[str]:
        """What was refused beside the servers themselves: listeners that they advertise, so one of them has answered."""
        own = {"{}:{}".format(*split_server(server)) for server in servers}
        return [address for address in self.guard.refused() if address not in own]

    def reason(self) -> tuple[str, str]:
        """Named state and text of why nobody answered."""
        told = [(_kind(error), error.str()) for error in self._errors]
        for kind, text_of in ((AUTHENTICATION_FAILED, _of_sasl), (TLS_FAILED, _of_tls)):
            for found, line in told:
                if found == kind:
                    return kind, text_of(line)
        for phrase, text in _PLACES:
            if any(phrase in line for _, line in told):
                return UNREACHABLE, text
        if any(found == UNREACHABLE for found, _ in told):
            return (
                UNREACHABLE,
                "Something listens there, but does not answer as Kafka does; check the protocol and the port.",
            )
        return TIMEOUT, "There was no answer in time; check the protocol and the port."


def try_address(config: Mapping[str, Any], address: str, rules: AddressRules, until: float) -> tuple[AddressSeen, Apis]:
    """Every step to one bootstrap server, and what its broker knows."""
    seen = AddressSeen(address)
    if not reach(seen, rules, until):
        return seen, {}
    tls, sasl = _uses(config)
    seen.tls, seen.authenticated = (Step() if tls else _UNUSED), (Step() if sasl else _UNUSED)
    try:
        trial = Trial(config, [address], rules)
    except (KafkaException, ValueError, TypeError, RuntimeError):
        seen.answered = Step(Outcome.FAILED, SETTINGS)
        return seen, {}
    try:
        trial.brokers(until)
    except KafkaException:
        kind, text = trial.reason()
        failed = Step(Outcome.FAILED, text)
        if trial.advertised_refused([address]):
            seen.tls, seen.authenticated = (OK if tls else _UNUSED), (OK if sasl else _UNUSED)
            seen.answered = OK
        elif kind == TLS_FAILED:
            seen.tls = failed
        elif kind == AUTHENTICATION_FAILED:
            seen.tls, seen.authenticated = (OK if tls else _UNUSED), failed
        else:
            seen.answered = failed
    else:
        seen.tls, seen.authenticated = (OK if tls else _UNUSED), (OK if sasl else _UNUSED)
        seen.answered = OK
    return seen, trial.heard.apis


SETTINGS = "The Kafka client refuses the cluster's settings; check protocol, certificate and key."


def reach(seen: AddressSeen, rules: AddressRules, until: float) -> bool:
    """Resolve and connect, and nothing more; whether both went well."""
    host, port = split_server(seen.address)
    try:
        rules.resolve(host, port)
    except AddressRefused as refused:
        seen.resolved = Step(Outcome.FAILED, f"This address {refused}.")
        return False
    except OSError:
        seen.resolved = Step(Outcome.FAILED, _NO_NAME)
        return False
    seen.resolved = OK
    try:
        rules.connect(host, port, max(until - time.monotonic(), 0.2)).close()
    except AddressRefused as refused:
        seen.resolved = Step(Outcome.FAILED, f"This address {refused}.")
        return False
    except TimeoutError:
        seen.connected = Step(Outcome.FAILED, _NO_ANSWER)
        return False
    except OSError:
        seen.connected = Step(Outcome.FAILED, _NO_LISTENER)
        return False
    seen.connected = OK
    return True


def version_of(apis: Apis) -> str | None:
    """The least version of Kafka whose brokers know all this; None where nothing is known."""
    found = None
    for api, version in _SINCE:
        found = version if api in apis else found
    # Since these versions the oldest forms of the requests are gone.
    if apis.get(_FETCH, (0, 0))[0] >= 4:
        found = "4.0"
    if apis.get(_SHARE_FETCH, (0, 0))[0] >= 1:
        found = "4.1"
    return found


def kinds_of(apis: Apis) -> list[str]:
    """Kinds of groups that the broker knows; none where nothing is known."""
    return ["classic", *(kind for kind, api in _KINDS if api in apis)] if apis else []


def _uses(config: Mapping[str, Any]) -> tuple[bool, bool]:
    protocol = str(config.get("security.protocol", "PLAINTEXT"))
    return protocol.endswith("SSL"), protocol.startswith("SASL_")


def _kind(error: KafkaError) -> str:
    # Alerts of TLS arrive as a lost connection.
    text = error.str()
    if "SSL handshake failed" in text or ("SSL" in text and "alert" in text):
        return TLS_FAILED
    return KINDS.get(error.code(), UNREACHABLE)


def _of_tls(line: str) -> str:
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


def _of_sasl(line: str) -> str:
    offered = _MECHANISMS.search(line)
    if offered is not None:
        return f"The listener does not take this mechanism; it offers {offered[1].strip(',')}."
    if "handshake failed" in line:
        return "The listener does not take SASL; check the port, or set a protocol without SASL."
    return "The broker refuses the credentials; check mechanism, user name and password."
