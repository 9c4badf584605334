"""A cluster's security as the API takes it: our names, or KEDA's spellings -> the canonical form that is stored.

Canonical names are listed in `cluster_kinds.py`. A secret is a text, or a reference to a file or a variable; what is
no secret may be given as one too, so that all of a mounted Secret can be referred to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from lagscale.errors import Fault, InvalidInput
from lagscale.kafka.secret_references import Reference
from lagscale.kafka.security import MSK_IAM, MSK_PROVIDER, PRINCIPAL, kind_of, privileged
from services.api.clusters.security_kinds import KINDS, MECHANISMS, SECRETS, check_kind, field

Values = Mapping[str, str | bool | None]
Secrets = Mapping[str, str | Mapping[str, str] | None]

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_PUBLIC = {
    "protocol": "protocol", "mechanism": "mechanism", "username": "username", "ca": "ca",
    "certificate": "certificate", "cert": "certificate", "verifyHostname": "verify_hostname",
    "saslTokenProvider": "token_provider", "tokenProvider": "token_provider",
    "tokenUrl": "token_url", "oauthTokenEndpointUri": "token_url", "tokenCa": "token_ca", "scopes": "scopes",
    "extensions": "extensions", "oauthExtensions": "extensions",
    "awsRegion": "aws_region", "awsRoleArn": "aws_role_arn", "awsPodRole": "aws_pod_role",
    "realm": "realm", "kerberosServiceName": "kerberos_service_name",
}  # fmt: skip
_SECRET = {
    "password": "password", "key": "key", "keyPassword": "key_password",
    "awsAccessKeyID": "aws_access_key_id", "awsAccessKeyId": "aws_access_key_id",
    "awsSecretAccessKey": "aws_secret_access_key", "awsSessionToken": "aws_session_token",
    "username": "username", "ca": "ca", "certificate": "certificate", "cert": "certificate", "tokenCa": "token_ca",
}  # fmt: skip
#: What a caller may give under `secrets`.
SECRET_NAMES = tuple(_SECRET)
#: What KEDA has and librdkafka has not -> the way out.
_DROPPED = {
    "keytab": "cannot be stored; a platform administrator sets the property sasl.kerberos.keytab to a mounted file",
    "kerberosConfig": "cannot be stored; mount it into the scraper as /etc/krb5.conf",
    "kerberosDisableFAST": "has no use: the Kafka client's Kerberos does not offer FAST",
    "awsEndpoint": "has no use: tokens for MSK are signed without a request to AWS",
    "awsExternalID": "is not supported; let awsRoleArn be one that needs no external id",
}
_PEM = {"ca": "CERTIFICATE", "certificate": "CERTIFICATE", "token_ca": "CERTIFICATE", "key": "PRIVATE KEY"}
_FLAGS = frozenset({"verify_hostname", "aws_pod_role"})
_PLAIN_NAME = "must be letters, digits, `.`, `_`, `/` and `-`"
#: What RFC 6749 allows in a scope, without the comma that KEDA parts them by.
_SCOPE = r"[\x21\x23-\x2b\x2d-\x5b\x5d-\x7e]"
_SHAPES = {
    "aws_region": (re.compile(r"[a-z]{2}(-[a-z]+){1,3}-\d{1,2}", re.ASCII), "must read like eu-west-1"),
    "aws_role_arn": (
        re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]{1,512}", re.ASCII),
        "must read like arn:aws:iam::111122223333:role/NAME",
    ),
    "realm": (PRINCIPAL, _PLAIN_NAME),
    "kerberos_service_name": (PRINCIPAL, _PLAIN_NAME),
    "scopes": (re.compile(rf"{_SCOPE}+([, ]+{_SCOPE}+)*"), "must be scopes by commas"),
    "extensions": (
        re.compile(r"(?!auth=)[A-Za-z]+=[\x20-\x2b\x2d-\x7e]+(, *(?!auth=)[A-Za-z]+=[\x20-\x2b\x2d-\x7e]+)*"),
        "must be NAME=VALUE by commas; names are letters, and not `auth`",
    ),
}


class Canonical(NamedTuple):
    """The stored forms. `secrets` and `references` are None together: both are kept as they are then."""

    security: dict[str, str | bool]
    secrets: dict[str, str] | None
    references: dict[str, dict[str, str]] | None


def canonical(
    security: Values,
    secrets: Secrets | None,
    *,
    platform: bool = False,
) -> Canonical:
    """The stored forms of both.

    Args:
        security: nothing secret, under our names or KEDA's.
        secrets: texts and references; None keeps what is stored.
        platform: whether a platform administrator gives them.

    Raises:
        InvalidInput: with every fault at once, without any value.
    """
    faults: list[Fault] = []
    public = _renamed(_from_keda(security, faults), faults)
    hidden = None if secrets is None else _hidden(secrets, faults)
    _check(public, hidden, faults)
    if not platform:
        faults += [
            Fault(name, "can be chosen by a platform administrator only; it lends what is the pod's")
            for name in privileged(public, {})
        ]
    if faults:
        raise InvalidInput(faults)
    if hidden is None:
        return Canonical(public, None, None)
    texts = {name: value for name, value in hidden.items() if isinstance(value, str)}
    references = {name: value.stored() for name, value in hidden.items() if isinstance(value, Reference)}
    return Canonical(public, texts, references)


def _from_keda(values: Values, faults: list[Fault]) -> dict[str, str | bool]:
    """`sasl`, `tls` and `unsafeSsl` -> protocol, mechanism, verifyHostname; everything else as it is."""
    given = {name: value for name, value in values.items() if value is not None and value != ""}
    keda = given.keys() & {"sasl", "tls", "unsafeSsl"}
    for name in ("protocol", "mechanism"):
        if name in given and keda:
            faults.append(Fault(f"security.{name}", "cannot stand beside KEDA's sasl and tls; give one or the other"))
    if not keda:
        if isinstance(given.get("protocol"), str):
            given["protocol"] = str(given["protocol"]).strip().upper()
        _settle(given, "mechanism", faults)
        return given
    sasl = str(given.pop("sasl", "none")).strip().lower()
    tls = str(given.pop("tls", "disable")).strip().lower()
    unsafe = str(given.pop("unsafeSsl", "false")).strip().lower()
    if tls not in {"enable", "disable"}:
        faults.append(Fault("security.tls", "must be enable or disable"))
    if unsafe != "false":
        text = "cannot be true: the certificate is always checked; give `ca`, and verifyHostname false if names differ"
        faults.append(Fault("security.unsafeSsl", text))
    transport = "SSL" if tls == "enable" else "PLAINTEXT"
    given["protocol"] = transport if sasl == "none" else f"SASL_{transport}"
    given.pop("mechanism", None)
    if sasl != "none":
        given["mechanism"] = sasl
    _settle(given, "sasl", faults)
    return given


def _settle(given: dict[str, str | bool], name: str, faults: list[Fault]) -> None:
    """The mechanism in its canonical form, and MSK's provider where one of the two names it."""
    provider = given.pop("saslTokenProvider", None) or given.pop("tokenProvider", None)
    provider = provider or given.pop("token_provider", None)
    if provider is not None and str(provider).strip().lower() not in {"bearer", MSK_PROVIDER}:
        faults.append(Fault("security.saslTokenProvider", f"must be bearer or {MSK_PROVIDER}"))
    by_msk = str(provider).strip().lower() == MSK_PROVIDER
    if "mechanism" in given:
        mechanism = MECHANISMS.get(str(given["mechanism"]).strip().lower())
        if mechanism is None:
            known = sorted({kind for kind in KINDS if kind != MSK_IAM} if name == "mechanism" else MECHANISMS)
            none = "none, " if name == "sasl" else ""
            faults.append(Fault(f"security.{name}", f"must be {none}{', '.join(known)}"))
            del given["mechanism"]
            return
        by_msk = by_msk or mechanism == MSK_IAM
        given["mechanism"] = "OAUTHBEARER" if mechanism == MSK_IAM else mechanism
    if provider is not None and given.get("mechanism") != "OAUTHBEARER":
        faults.append(Fault("security.saslTokenProvider", "has a use with OAUTHBEARER only; leave it out"))
    elif by_msk:
        given["token_provider"] = MSK_PROVIDER


def _renamed(values: Mapping[str, str | bool], faults: list[Fault]) -> dict[str, str | bool]:
    renamed: dict[str, str | bool] = {}
    for name, value in values.items():
        if not isinstance(value, str | bool):
            faults.append(Fault(f"security.{name}", "must be a text"))
        elif name in _PUBLIC or name in _PUBLIC.values():
            canonical_name = _PUBLIC.get(name, name)
            flag = str(value).strip().lower()
            is_flag = canonical_name in _FLAGS and flag in {"true", "false"}
            renamed[canonical_name] = flag == "true" if is_flag else value
        elif _SECRET.get(name, name) in SECRETS:
            faults.append(Fault(f"security.{name}", "is a secret; give it under `secrets`"))
        elif name in _DROPPED:
            faults.append(Fault(f"security.{name}", _DROPPED[name]))
        else:
            faults.append(Fault(f"security.{name}", f"is not known; known are {', '.join(sorted(_PUBLIC))}"))
    return renamed


def _hidden(values: Secrets, faults: list[Fault]) -> dict[str, str | Reference]:
    hidden: dict[str, str | Reference] = {}
    for name, value in values.items():
        if value is None or value == "":
            continue
        if name not in _SECRET and name not in _SECRET.values():
            text = _DROPPED.get(name)
            if text is None and name in _PUBLIC:
                text = "is no secret; give it under `security`"
            faults.append(Fault(f"secrets.{name}", text or f"is not known; known are {', '.join(sorted(_SECRET))}"))
        elif isinstance(value, str):
            hidden[_SECRET.get(name, name)] = value
        else:
            try:
                hidden[_SECRET.get(name, name)] = Reference.read(value)
            except ValueError as wrong:
                faults.append(Fault(f"secrets.{name}", str(wrong)))
    return hidden


def _check(public: dict[str, str | bool], hidden: Mapping[str, str | Reference] | None, faults: list[Fault]) -> None:
    protocol = public.setdefault("protocol", "PLAINTEXT")
    if protocol not in _PROTOCOLS:
        faults.append(Fault("security.protocol", f"must be {', '.join(_PROTOCOLS[:-1])} or {_PROTOCOLS[-1]}"))
        return
    sasl = str(protocol).startswith("SASL_")
    if sasl and "mechanism" not in public:
        if not any(fault.field in {"security.mechanism", "security.sasl"} for fault in faults):
            known = ", ".join(sorted(kind for kind in KINDS if kind != MSK_IAM))
            faults.append(Fault("security.mechanism", f"is needed for {protocol}; it is one of {known}"))
    else:
        faults += check_kind(kind_of(public), public, None if hidden is None else hidden.keys())
    if not sasl and "mechanism" in public:
        faults.append(Fault("security.mechanism", f"has no use with {protocol}; set protocol to SASL_..."))
    if kind_of(public) == "GSSAPI" and PRINCIPAL.fullmatch(str(public.get("username", "x"))) is None:
        faults.append(Fault("security.username", _PLAIN_NAME))
    for name, value in public.items():
        _check_value(field(name), name, value, faults)
    for name, hidden_value in (hidden or {}).items():
        if name in public:
            faults.append(Fault(f"secrets.{name}", "is given under `security` too; give it once"))
        if isinstance(hidden_value, str):
            _check_value(f"secrets.{field(name).partition('.')[2]}", name, hidden_value, faults)


def _check_value(where: str, name: str, value: str | bool, faults: list[Fault]) -> None:
    text = str(value)
    if name in _FLAGS:
        if not isinstance(value, bool):
            faults.append(Fault(where, "must be true or false"))
    elif not isinstance(value, str):
        faults.append(Fault(where, "must be a text"))
    elif name in _PEM:
        if f"{_PEM[name]}-----" not in text:
            faults.append(Fault(where, "must be PEM text, from -----BEGIN to END-----"))
        elif "\x00" in text:
            faults.append(Fault(where, "must be text"))
    elif not text.isprintable():
        faults.append(Fault(where, "must be printable characters on one line"))
    elif name in _SHAPES and _SHAPES[name][0].fullmatch(text) is None:
        faults.append(Fault(where, _SHAPES[name][1]))
    elif name == "token_url" and not _is_token_url(text):
        faults.append(Fault(where, "must read like https://login.example/oauth2/token, without a user and a fragment"))


def _is_token_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        port_is_fine = parts.port is None or 0 < parts.port < 65536
    except ValueError:
        return False
    plain = text.isascii() and " " not in text and "\\" not in text
    return bool(
        plain and port_is_fine and parts.scheme in {"http", "https"} and parts.hostname and "@" not in parts.netloc
        and not parts.fragment
    )  # fmt: skip
