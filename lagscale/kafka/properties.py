"""Properties of the Kafka client that a cluster may set: one list for tenants, a wider one for the platform.

Whatever stands in neither list is refused, so that a property of a newer client is refused until somebody has looked
at it. The API checks what is written, and `client_config` checks again what is handed to the client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lagscale.errors import Fault

#: A property's value as it is stored: integers and booleans as such, else text.
Value = str | int | bool
_LONGEST_TEXT = 1024
_MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Rule:
    """What one property may be: `read` raises ValueError with what it must be."""

    read: Callable[[Value], Value]


def _number(least: int, most: int) -> Rule:
    def read(value: Value) -> Value:
        text = str(value).strip()
        if isinstance(value, bool) or not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(text)

    return Rule(read)


def _flag() -> Rule:
    def read(value: Value) -> Value:
        text = str(value).strip().lower()
        if text not in {"true", "false"}:
            raise ValueError("must be true or false")
        return text == "true"

    return Rule(read)


def _one_of(*known: str) -> Rule:
    def read(value: Value) -> Value:
        if str(value) not in known:
            raise ValueError(f"must be {' or '.join(known)}")
        return str(value)

    return Rule(read)


def _text() -> Rule:
    def read(value: Value) -> Value:
        if not isinstance(value, str) or not value or not value.isprintable() or len(value) > _LONGEST_TEXT:
            raise ValueError(f"must be 1 to {_LONGEST_TEXT} printable characters on one line")
        return value

    return Rule(read)


#: What harms nobody but the cluster that sets it. The bounds keep a client from hammering, and from filling memory.
TENANTS: Mapping[str, Rule] = {
    "client.id": _text(),
    "client.rack": _text(),
    "broker.address.family": _one_of("any", "v4", "v6"),
    "broker.address.ttl": _number(0, 3_600_000),
    "socket.timeout.ms": _number(1000, 300_000),
    "socket.connection.setup.timeout.ms": _number(1000, 60_000),
    "socket.keepalive.enable": _flag(),
    "socket.nagle.disable": _flag(),
    "socket.max.fails": _number(0, 1000),
    "socket.send.buffer.bytes": _number(0, 8 * _MEBIBYTE),
    "socket.receive.buffer.bytes": _number(0, 8 * _MEBIBYTE),
    "receive.message.max.bytes": _number(_MEBIBYTE, 100_000_000),
    "max.in.flight.requests.per.connection": _number(1, 1_000_000),
    "connections.max.idle.ms": _number(0, 3_600_000),
    "reconnect.backoff.ms": _number(50, 60_000),
    "reconnect.backoff.max.ms": _number(100, 600_000),
    "retry.backoff.ms": _number(50, 60_000),
    "retry.backoff.max.ms": _number(50, 60_000),
    "metadata.max.age.ms": _number(10_000, 86_400_000),
    "topic.metadata.refresh.interval.ms": _number(10_000, 3_600_000),
    "topic.metadata.refresh.sparse": _flag(),
    "metadata.recovery.strategy": _one_of("none", "rebootstrap"),
    "metadata.recovery.rebootstrap.trigger.ms": _number(1000, 86_400_000),
    "api.version.request.timeout.ms": _number(1000, 300_000),
    "ssl.cipher.suites": _text(),
    "ssl.curves.list": _text(),
    "ssl.sigalgs.list": _text(),
}

#: What the platform's administrators may set beside those: files of the pod, commands, plugins, and what it says.
PLATFORM: Mapping[str, Rule] = {
    "ssl.ca.location": _text(),
    "ssl.crl.location": _text(),
    "ssl.certificate.location": _text(),
    "ssl.key.location": _text(),
    "ssl.keystore.location": _text(),
    "ssl.engine.location": _text(),
    "ssl.engine.id": _text(),
    "ssl.providers": _text(),
    "enable.ssl.certificate.verification": _flag(),
    "sasl.kerberos.keytab": _text(),
    "sasl.kerberos.kinit.cmd": _text(),
    "sasl.kerberos.min.time.before.relogin": _number(0, 86_400_000),
    "plugin.library.paths": _text(),
    "client.dns.lookup": _one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    "debug": _text(),
    "log_level": _number(0, 7),
    "log.connection.close": _flag(),
    "enable.metrics.push": _flag(),
}

#: The beginning, or all, of what nobody sets as a property -> where it belongs. The longest one counts.
_ELSEWHERE: Mapping[str, str] = {
    "bootstrap.servers": "give it as `bootstrapServers`",
    "metadata.broker.list": "give it as `bootstrapServers`",
    "security.protocol": "give it as `security.protocol`",
    "sasl.mechanism": "give it as `security.mechanism`",
    "sasl.username": "give it as `security.username`",
    "sasl.password": "is a secret; give it as `secrets.password`",
    "sasl.kerberos.": "give `security.kerberosServiceName`, `username` and `realm`",
    "sasl.oauthbearer.": "Lagscale asks for tokens itself; give `security.tokenUrl`, `scopes` and `extensions`",
    "ssl.key.": "is a secret; give it as `secrets.key` and `secrets.keyPassword`",
    "ssl.keystore.": "is a secret; give the key as `secrets.key` and `secrets.keyPassword`",
    "ssl.ca.": "give it as `security.ca`",
    "ssl.certificate.": "give it as `security.certificate`",
    "ssl.endpoint.identification.algorithm": "give it as `security.verifyHostname`",
}
_REASONS: Mapping[str, str] = {
    "sasl.kerberos.kinit.cmd": "runs a command in Lagscale's pod",
    "plugin.library.paths": "loads a plugin into Lagscale's process",
    "ssl.engine.location": "loads a library into Lagscale's process",
    "ssl.engine.id": "loads a library into Lagscale's process",
    "ssl.providers": "loads a library into Lagscale's process",
    "enable.ssl.certificate.verification": "lets anybody pass for the broker",
}


def checked(
    given: Mapping[str, object], *, platform: bool, field: str = "properties"
) -> tuple[dict[str, Value], list[Fault]]:
    """The properties in their stored form, and a fault for each that may not be set.

    Args:
        given: names of librdkafka -> values; None means not given.
        platform: whether a platform administrator sets them.
        field: what the faults' fields begin with.
    """
    found: dict[str, Value] = {}
    faults: list[Fault] = []
    for name, value in given.items():
        if value is None:
            continue
        rule = TENANTS.get(name) or (PLATFORM.get(name) if platform else None)
        if rule is None:
            faults.append(Fault(f"{field}.{_shown(name)}", why_refused(name)))
        elif not isinstance(value, str | int):
            faults.append(Fault(f"{field}.{name}", "must be a text, a whole number, true or false"))
        else:
            try:
                found[name] = rule.read(value)
            except ValueError as wrong:
                faults.append(Fault(f"{field}.{name}", str(wrong)))
    return found, faults


def privileged(names: Mapping[str, object]) -> list[str]:
    """Which of the properties only a platform administrator may set."""
    return sorted(names.keys() - TENANTS.keys())


def why_refused(name: str) -> str:
    """Why a tenant, or nobody, may set a property, and the way out."""
    if name in PLATFORM:
        reason = _REASONS.get(name) or ("names a file of Lagscale's pod" if _names_a_file(name) else "")
        return f"{reason + ', so it' if reason else 'it'} can be set by a platform administrator only"
    beginnings = sorted((start for start in _ELSEWHERE if name.startswith(start)), key=len)
    if beginnings:
        return f"cannot be set as a property; {_ELSEWHERE[beginnings[-1]]}"
    return "is not among the properties that a cluster may set; docs/clusters.md lists them"


def _names_a_file(name: str) -> bool:
    return name.endswith((".location", ".keytab"))


def _shown(name: str) -> str:
    # What a caller calls a property may be anything; a fault's field stays short and on one line.
    return name if name.isprintable() and len(name) <= 80 else "(a name)"
