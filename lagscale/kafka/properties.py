"""Properties of the Kafka client that a cluster may set: one list for tenants, a wider one for the platform.

Anything else is refused, so that a property of a newer client is refused until somebody has reviewed it. The API checks
properties when they are written, and `client` checks them again before they reach the client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lagscale.errors import FieldError

#: A stored value: integers and booleans as such, anything else as a string.
PropertyValue = str | int | bool
_LONGEST_TEXT = 1024
_MEBIBYTE = 1 << 20


#: The parsed value of one property; raises ValueError with what the value must be.
PropertyRule = Callable[[PropertyValue], PropertyValue]


def _build_number_rule(minimum: int, maximum: int) -> PropertyRule:
    def read(value: PropertyValue) -> PropertyValue:
        text = str(value).strip()
        if isinstance(value, bool) or not text.isascii() or not text.isdigit() or not minimum <= int(text) <= maximum:
            raise ValueError(f"must be an integer from {minimum} to {maximum}")
        return int(text)

    return read


def _build_choice_rule(*choices: str) -> PropertyRule:
    def read(value: PropertyValue) -> PropertyValue:
        if str(value) not in choices:
            raise ValueError(f"must be {' or '.join(choices)}")
        return str(value)

    return read


def _read_flag(value: PropertyValue) -> PropertyValue:
    text = str(value).strip().lower()
    if text not in {"true", "false"}:
        raise ValueError("must be true or false")
    return text == "true"


def _read_text(value: PropertyValue) -> PropertyValue:
    if not isinstance(value, str) or not value or not value.isprintable() or len(value) > _LONGEST_TEXT:
        raise ValueError(f"must be 1 to {_LONGEST_TEXT} printable characters on one line")
    return value


#: Harmless to others than the cluster that sets them. The bounds limit requests and memory.
TENANT_PROPERTIES: Mapping[str, PropertyRule] = {
    "client.id": _read_text,
    "client.rack": _read_text,
    "broker.address.family": _build_choice_rule("any", "v4", "v6"),
    "broker.address.ttl": _build_number_rule(0, 3_600_000),
    "socket.timeout.ms": _build_number_rule(1000, 300_000),
    "socket.connection.setup.timeout.ms": _build_number_rule(1000, 60_000),
    "socket.keepalive.enable": _read_flag,
    "socket.nagle.disable": _read_flag,
    "socket.max.fails": _build_number_rule(0, 1000),
    "socket.send.buffer.bytes": _build_number_rule(0, 8 * _MEBIBYTE),
    "socket.receive.buffer.bytes": _build_number_rule(0, 8 * _MEBIBYTE),
    "receive.message.max.bytes": _build_number_rule(_MEBIBYTE, 100_000_000),
    "max.in.flight.requests.per.connection": _build_number_rule(1, 1_000_000),
    "connections.max.idle.ms": _build_number_rule(0, 3_600_000),
    "reconnect.backoff.ms": _build_number_rule(50, 60_000),
    "reconnect.backoff.max.ms": _build_number_rule(100, 600_000),
    "retry.backoff.ms": _build_number_rule(50, 60_000),
    "retry.backoff.max.ms": _build_number_rule(50, 60_000),
    "metadata.max.age.ms": _build_number_rule(10_000, 86_400_000),
    "topic.metadata.refresh.interval.ms": _build_number_rule(10_000, 3_600_000),
    "topic.metadata.refresh.sparse": _read_flag,
    "metadata.recovery.strategy": _build_choice_rule("none", "rebootstrap"),
    "metadata.recovery.rebootstrap.trigger.ms": _build_number_rule(1000, 86_400_000),
    "api.version.request.timeout.ms": _build_number_rule(1000, 300_000),
    "ssl.cipher.suites": _read_text,
    "ssl.curves.list": _read_text,
    "ssl.sigalgs.list": _read_text,
}

#: For platform administrators in addition: files of the pod, commands, plugins, and logging.
PLATFORM_PROPERTIES: Mapping[str, PropertyRule] = {
    "ssl.ca.location": _read_text,
    "ssl.crl.location": _read_text,
    "ssl.certificate.location": _read_text,
    "ssl.key.location": _read_text,
    "ssl.keystore.location": _read_text,
    "ssl.engine.location": _read_text,
    "ssl.engine.id": _read_text,
    "ssl.providers": _read_text,
    "enable.ssl.certificate.verification": _read_flag,
    "sasl.kerberos.keytab": _read_text,
    "sasl.kerberos.kinit.cmd": _read_text,
    "sasl.kerberos.min.time.before.relogin": _build_number_rule(0, 86_400_000),
    "plugin.library.paths": _read_text,
    "client.dns.lookup": _build_choice_rule("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    "debug": _read_text,
    "log_level": _build_number_rule(0, 7),
    "log.connection.close": _read_flag,
    "enable.metrics.push": _read_flag,
}

#: Prefix of properties that are set elsewhere -> where. The longest prefix applies.
_SET_ELSEWHERE: Mapping[str, str] = {
    "bootstrap.servers": "set `bootstrapServers`",
    "metadata.broker.list": "set `bootstrapServers`",
    "security.protocol": "set `security.protocol`",
    "sasl.mechanism": "set `security.mechanism`",
    "sasl.username": "set `security.username`",
    "sasl.password": "set the secret `secrets.password`",
    "sasl.kerberos.": "set `security.kerberosServiceName`, `username` and `realm`",
    "sasl.oauthbearer.": "Lagscale requests tokens itself; set `security.tokenUrl`, `scopes` and `extensions`",
    "ssl.key.": "set the secrets `secrets.key` and `secrets.keyPassword`",
    "ssl.keystore.": "set the secrets `secrets.key` and `secrets.keyPassword`",
    "ssl.ca.": "set `security.ca`",
    "ssl.certificate.": "set `security.certificate`",
    "ssl.endpoint.identification.algorithm": "set `security.verifyHostname`",
}
_REASONS: Mapping[str, str] = {
    "sasl.kerberos.kinit.cmd": "runs a command in Lagscale's pod",
    "plugin.library.paths": "loads a plugin into Lagscale's process",
    "ssl.engine.location": "loads a library into Lagscale's process",
    "ssl.engine.id": "loads a library into Lagscale's process",
    "ssl.providers": "loads a library into Lagscale's process",
    "enable.ssl.certificate.verification": "accepts any broker certificate",
}


def check_properties(
    given: Mapping[str, object], *, platform: bool, field: str = "properties"
) -> tuple[dict[str, PropertyValue], list[FieldError]]:
    """The properties in their stored form, and an error for each that may not be set.

    Args:
        given: property names of librdkafka -> values; None means not set.
        platform: whether a platform administrator sets them.
        field: prefix of the errors' fields.
    """
    found: dict[str, PropertyValue] = {}
    field_errors: list[FieldError] = []
    for name, value in given.items():
        if value is None:
            continue
        rule = TENANT_PROPERTIES.get(name) or (PLATFORM_PROPERTIES.get(name) if platform else None)
        if rule is None:
            field_errors.append(FieldError(f"{field}.{_shorten_name(name)}", explain_refusal(name)))
        elif not isinstance(value, str | int):
            field_errors.append(FieldError(f"{field}.{name}", "must be a string, an integer or a boolean"))
        else:
            try:
                found[name] = rule(value)
            except ValueError as wrong:
                field_errors.append(FieldError(f"{field}.{name}", str(wrong)))
    return found, field_errors


def list_privileged_properties(names: Mapping[str, object]) -> list[str]:
    """Which of the properties only a platform administrator may set."""
    return sorted(names.keys() - TENANT_PROPERTIES.keys())


def explain_refusal(name: str) -> str:
    """Why a property may not be set, with a remediation."""
    if name in PLATFORM_PROPERTIES:
        reason = _REASONS.get(name) or ("names a file of Lagscale's pod" if _names_a_file(name) else "")
        return f"{reason + ', so it' if reason else 'it'} can be set by a platform administrator only"
    beginnings = sorted((start for start in _SET_ELSEWHERE if name.startswith(start)), key=len)
    if beginnings:
        return f"is not an allowed property; {_SET_ELSEWHERE[beginnings[-1]]}"
    return "is not an allowed property; see docs/clusters.md for the list"


def _names_a_file(name: str) -> bool:
    return name.endswith((".location", ".keytab"))


def _shorten_name(name: str) -> str:
    # The name may be anything; the field of an error stays short and on one line.
    return name if name.isprintable() and len(name) <= 80 else "(a name)"
