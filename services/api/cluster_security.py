"""A cluster's security as the API takes it: our names, or KEDA's spellings -> the canonical form that is stored.

Canonical: `protocol`, `mechanism`, `username`, `ca`, `certificate`, `verify_hostname`; secret: `password`, `key`,
`key_password`.
"""

from __future__ import annotations

from collections.abc import Mapping

from lagscale.errors import Fault, InvalidInput

Values = Mapping[str, str | bool | None]

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
#: KEDA's names -> ours; `sasl` and `tls` are read together, below.
_KEDA_SASL = {"plaintext": "PLAIN", "scram_sha256": "SCRAM-SHA-256", "scram_sha512": "SCRAM-SHA-512"}
_PUBLIC = {"protocol": "protocol", "mechanism": "mechanism", "username": "username", "ca": "ca",
           "certificate": "certificate", "cert": "certificate", "verifyHostname": "verify_hostname"}  # fmt: skip
_SECRET = {"password": "password", "key": "key", "keyPassword": "key_password"}
#: What a caller may give under `secrets`.
SECRETS = tuple(_SECRET)
_PEM = {"ca": "CERTIFICATE", "certificate": "CERTIFICATE", "key": "PRIVATE KEY"}


def canonical(
    security: Values, secrets: Mapping[str, str | None] | None
) -> tuple[dict[str, str | bool], dict[str, str] | None]:
    """The stored forms of both.

    Args:
        security: nothing secret, under our names or KEDA's.
        secrets: None keeps what is stored.

    Raises:
        InvalidInput: with every fault at once, without any value.
    """
    faults: list[Fault] = []
    public = _renamed(_from_keda(security, faults), _PUBLIC, "security", faults)
    hidden = None if secrets is None else _renamed(secrets, _SECRET, "secrets", faults)
    _check(public, hidden, faults)
    if faults:
        raise InvalidInput(faults)
    return public, None if hidden is None else {name: str(value) for name, value in hidden.items()}


def _from_keda(values: Values, faults: list[Fault]) -> dict[str, str | bool | None]:
    """`sasl`, `tls` and `unsafeSsl` -> protocol, mechanism, verifyHostname; everything else as it is."""
    given = {name: value for name, value in values.items() if value is not None and value != ""}
    if not given.keys() & {"sasl", "tls", "unsafeSsl"}:
        return dict(given)
    sasl = str(given.pop("sasl", "none")).strip().lower()
    tls = str(given.pop("tls", "disable")).strip().lower()
    unsafe = str(given.pop("unsafeSsl", "false")).strip().lower()
    if sasl != "none" and sasl not in _KEDA_SASL:
        faults.append(Fault("security.sasl", f"must be none, {', '.join(_KEDA_SASL)}; others are not yet supported"))
    if tls not in {"enable", "disable"}:
        faults.append(Fault("security.tls", "must be enable or disable"))
    if unsafe != "false":
        text = "cannot be true: the certificate is always checked; give `ca`, and verifyHostname false if names differ"
        faults.append(Fault("security.unsafeSsl", text))
    for name in ("protocol", "mechanism"):
        if name in given:
            faults.append(Fault(f"security.{name}", "cannot stand beside KEDA's sasl and tls; give one or the other"))
    transport = "SSL" if tls == "enable" else "PLAINTEXT"
    given["protocol"] = transport if sasl == "none" else f"SASL_{transport}"
    if sasl in _KEDA_SASL:
        given["mechanism"] = _KEDA_SASL[sasl]
    return dict(given)


def _renamed(
    values: Mapping[str, str | bool | None], names: Mapping[str, str], field: str, faults: list[Fault]
) -> dict[str, str | bool]:
    renamed: dict[str, str | bool] = {}
    for name, value in values.items():
        if value is None or value == "":
            continue
        if not isinstance(value, str | bool):
            faults.append(Fault(f"{field}.{name}", "must be a text"))
        elif name in names or name in names.values():
            renamed[names.get(name, name)] = value
        elif name in _SECRET and field == "security":
            faults.append(Fault(f"security.{name}", "is a secret; give it under `secrets`"))
        else:
            faults.append(Fault(f"{field}.{name}", f"is not known; known are {', '.join(sorted(names))}"))
    return renamed


def _check(public: dict[str, str | bool], hidden: Mapping[str, str | bool] | None, faults: list[Fault]) -> None:
    protocol = public.setdefault("protocol", "PLAINTEXT")
    if protocol not in _PROTOCOLS:
        faults.append(Fault("security.protocol", f"must be {', '.join(_PROTOCOLS[:-1])} or {_PROTOCOLS[-1]}"))
        return
    sasl = str(protocol).startswith("SASL_")
    if sasl and public.get("mechanism") not in _MECHANISMS:
        faults.append(Fault("security.mechanism", f"must be {', '.join(_MECHANISMS)}; others are not yet supported"))
    if sasl and "username" not in public:
        faults.append(Fault("security.username", f"is needed for {protocol}"))
    for name in ("mechanism", "username"):
        if not sasl and name in public:
            faults.append(Fault(f"security.{name}", f"has no use with {protocol}; set protocol to SASL_..."))
    if not isinstance(public.get("verify_hostname", True), bool):
        faults.append(Fault("security.verifyHostname", "must be true or false"))
    for name, value in {**public, **(hidden or {})}.items():
        field = f"secrets.{name}" if hidden and name in hidden else f"security.{name}"
        if name in _PEM and f"{_PEM[name]}-----" not in str(value):
            faults.append(Fault(field, "must be PEM text, from -----BEGIN to END-----"))
        elif name not in _PEM and isinstance(value, str) and not value.isprintable():
            faults.append(Fault(field, "must be printable characters on one line"))
        elif "\x00" in str(value):
            faults.append(Fault(field, "must be text"))
