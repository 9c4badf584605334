"""Security of a cluster: the API's names, or KEDA's -> the canonical form that is stored.

A secret is a string, or a reference to a file or an environment variable; other fields may be given under `secrets` too,
so that every entry of a mounted Secret can be referred to.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from lagscale.domain.tenancy import suggest_names
from lagscale.errors import FieldError, InvalidInput
from lagscale.kafka.certificates import find_pem_error
from lagscale.kafka.properties import check_properties
from lagscale.kafka.secrets import SecretReference
from lagscale.kafka.security import MSK_IAM, MSK_PROVIDER, PRINCIPAL, find_mechanism, list_privileged
from lagscale.store.registry.clusters import ClusterSpec
from services.api.clusters.mechanisms import (
    FIELDS_BY_MECHANISM,
    MECHANISMS,
    SECRET_FIELDS,
    SECRETS,
    build_field_path,
    check_mechanism_fields,
)
from services.api.clusters.schemas import ClusterIn

Values = Mapping[str, str | bool | None]
Secrets = Mapping[str, str | Mapping[str, str] | None]

_SASL_MECHANISMS = tuple(sorted(FIELDS_BY_MECHANISM.keys() - {MSK_IAM}))
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
#: Fields of KEDA that librdkafka does not support -> remediation.
_UNSUPPORTED = {
    "keytab": "cannot be stored; a platform administrator sets the property sasl.kerberos.keytab to a mounted file",
    "kerberosConfig": "cannot be stored; mount it into the scraper as /etc/krb5.conf",
    "kerberosDisableFAST": "is not used: the Kerberos of the Kafka client does not support FAST",
    "awsEndpoint": "is not used: tokens for MSK are signed without a request to AWS",
    "awsExternalID": "is not supported; use an awsRoleArn that requires no external id",
}
_PEM = {"ca": "CERTIFICATE", "certificate": "CERTIFICATE", "token_ca": "CERTIFICATE", "key": "PRIVATE KEY"}
_FLAGS = frozenset({"verify_hostname", "aws_pod_role"})
_PLAIN_NAME = "must be letters, digits, `.`, `_`, `/` and `-`"
#: Characters of a scope (RFC 6749), without the comma, by which KEDA separates scopes.
_SCOPE = r"[\x21\x23-\x2b\x2d-\x5b\x5d-\x7e]"
_PATTERNS = {
    "aws_region": (re.compile(r"[a-z]{2}(-[a-z]+){1,3}-\d{1,2}", re.ASCII), "must be a region like eu-west-1"),
    "aws_role_arn": (
        re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]{1,512}", re.ASCII),
        "must be an ARN like arn:aws:iam::111122223333:role/NAME",
    ),
    "realm": (PRINCIPAL, _PLAIN_NAME),
    "kerberos_service_name": (PRINCIPAL, _PLAIN_NAME),
    "scopes": (re.compile(rf"{_SCOPE}+([, ]+{_SCOPE}+)*"), "must be comma-separated scopes"),
    "extensions": (
        re.compile(r"(?!auth=)[A-Za-z]+=[\x20-\x2b\x2d-\x7e]+(, *(?!auth=)[A-Za-z]+=[\x20-\x2b\x2d-\x7e]+)*"),
        "must be comma-separated NAME=VALUE; names are letters, and not `auth`",
    ),
}


class CanonicalSecurity(NamedTuple):
    """The stored form. `secrets` and `references` are None together: then the stored ones stay unchanged."""

    security: dict[str, str | bool]
    secrets: dict[str, str] | None
    references: dict[str, dict[str, str]] | None


def canonicalize(security: Values, secrets: Secrets | None, *, platform: bool = False) -> CanonicalSecurity:
    """The stored form of security and secrets.

    Args:
        security: fields that are not secret, by the API's names or KEDA's.
        secrets: strings and references; None keeps the stored ones.
        platform: whether the caller is a platform administrator.

    Raises:
        InvalidInput: with all errors, which contain no values.
    """
    field_errors: list[FieldError] = []
    public = _rename_keys(_convert_keda(security, field_errors), field_errors)
    public.setdefault("protocol", "PLAINTEXT")
    hidden = None if secrets is None else _read_secrets(secrets, field_errors)
    mechanism_refused = any(error.field in {"security.mechanism", "security.sasl"} for error in field_errors)
    field_errors += _check_security(public, hidden, mechanism_refused=mechanism_refused)
    if not platform:
        field_errors += [
            FieldError(name, "requires a platform administrator, because it uses credentials of the pod")
            for name in list_privileged(public, {})
        ]
    if field_errors:
        raise InvalidInput(field_errors)
    if hidden is None:
        return CanonicalSecurity(public, None, None)
    texts = {name: value for name, value in hidden.items() if isinstance(value, str)}
    references = {name: value.to_stored() for name, value in hidden.items() if isinstance(value, SecretReference)}
    return CanonicalSecurity(public, texts, references)


def build_cluster_spec(name: str, given: ClusterIn, *, platform: bool, can_encrypt: bool = True) -> ClusterSpec:
    """The cluster that a request describes.

    Args:
        name: of the cluster.
        given: the body; omitted secrets keep the stored ones, other omitted fields are empty.
        platform: whether the caller is a platform administrator.
        can_encrypt: whether there is a key by which secrets can be stored.

    Raises:
        InvalidInput: with all errors.
    """
    field_errors: list[FieldError] = []
    canonical_security = CanonicalSecurity({}, None, None)
    try:
        canonical_security = canonicalize(given.security, given.secrets, platform=platform)
    except InvalidInput as error:
        field_errors += error.field_errors
    properties, property_errors = check_properties(given.properties, platform=platform)
    field_errors += property_errors
    if field_errors:
        raise InvalidInput(field_errors)
    if canonical_security.secrets and not can_encrypt:
        raise InvalidInput([FieldError("secrets", "cannot be stored: LAGSCALE_SECRET_KEYS is not set")])
    return ClusterSpec(
        name,
        tuple(given.bootstrap_servers),
        canonical_security.security,
        canonical_security.secrets,
        canonical_security.references,
        properties,
        platform,
    )


def _convert_keda(values: Values, field_errors: list[FieldError]) -> dict[str, str | bool]:
    """`sasl`, `tls` and `unsafeSsl` -> protocol, mechanism, verifyHostname; other fields unchanged."""
    values_given = {name: value for name, value in values.items() if value is not None and value != ""}
    keda = values_given.keys() & {"sasl", "tls", "unsafeSsl"}
    for name in ("protocol", "mechanism"):
        if name in values_given and keda:
            field_errors.append(
                FieldError(f"security.{name}", "cannot be combined with KEDA's sasl and tls; set one or the other")
            )
    if not keda:
        if isinstance(values_given.get("protocol"), str):
            values_given["protocol"] = str(values_given["protocol"]).strip().upper()
        _normalize_mechanism(values_given, "mechanism", field_errors)
        return values_given
    sasl = str(values_given.pop("sasl", "none")).strip().lower()
    tls = str(values_given.pop("tls", "disable")).strip().lower()
    unsafe = str(values_given.pop("unsafeSsl", "false")).strip().lower()
    if tls not in {"enable", "disable"}:
        field_errors.append(FieldError("security.tls", "must be enable or disable"))
    if unsafe != "false":
        text = (
            "cannot be true: certificates are always verified; set `ca`, and verifyHostname false if the names differ"
        )
        field_errors.append(FieldError("security.unsafeSsl", text))
    transport = "SSL" if tls == "enable" else "PLAINTEXT"
    values_given["protocol"] = transport if sasl == "none" else f"SASL_{transport}"
    values_given.pop("mechanism", None)
    if sasl != "none":
        values_given["mechanism"] = sasl
    _normalize_mechanism(values_given, "sasl", field_errors)
    return values_given


def _normalize_mechanism(values_given: dict[str, str | bool], name: str, field_errors: list[FieldError]) -> None:
    """Set the canonical mechanism, and the token provider of MSK if either of the two fields names it."""
    provider = values_given.pop("saslTokenProvider", None) or values_given.pop("tokenProvider", None)
    provider = provider or values_given.pop("token_provider", None)
    if provider is not None and str(provider).strip().lower() not in {"bearer", MSK_PROVIDER}:
        field_errors.append(FieldError("security.saslTokenProvider", f"must be bearer or {MSK_PROVIDER}"))
    by_msk = str(provider).strip().lower() == MSK_PROVIDER
    if "mechanism" in values_given:
        mechanism = MECHANISMS.get(str(values_given["mechanism"]).strip().lower())
        if mechanism is None:
            allowed = ("none", *sorted(MECHANISMS)) if name == "sasl" else _SASL_MECHANISMS
            field_errors.append(FieldError(f"security.{name}", f"must be {', '.join(allowed)}"))
            del values_given["mechanism"]
            return
        by_msk = by_msk or mechanism == MSK_IAM
        values_given["mechanism"] = "OAUTHBEARER" if mechanism == MSK_IAM else mechanism
    if provider is not None and values_given.get("mechanism") != "OAUTHBEARER":
        field_errors.append(FieldError("security.saslTokenProvider", "is used with OAUTHBEARER only; omit it"))
    elif by_msk:
        values_given["token_provider"] = MSK_PROVIDER


def _rename_keys(values: Mapping[str, str | bool], field_errors: list[FieldError]) -> dict[str, str | bool]:
    renamed: dict[str, str | bool] = {}
    for name, value in values.items():
        if not isinstance(value, str | bool):
            field_errors.append(FieldError(f"security.{name}", "must be a string"))
        elif name in _PUBLIC or name in _PUBLIC.values():
            canonical_name = _PUBLIC.get(name, name)
            flag = str(value).strip().lower()
            is_flag = canonical_name in _FLAGS and flag in {"true", "false"}
            renamed[canonical_name] = flag == "true" if is_flag else value
        elif SECRET_FIELDS.get(name, name) in SECRETS:
            field_errors.append(FieldError(f"security.{name}", "is a secret; move it to `secrets`"))
        elif name in _UNSUPPORTED:
            field_errors.append(FieldError(f"security.{name}", _UNSUPPORTED[name]))
        else:
            field_errors.append(FieldError(f"security.{name}", _describe_unknown(name, [*_PUBLIC, "sasl", "tls"])))
    return renamed


def _describe_unknown(name: str, valid: Collection[str]) -> str:
    by_lower_case = {one.lower(): one for one in valid}
    near = suggest_names(name, by_lower_case, 1)
    if near:
        return f"unknown field; did you mean {by_lower_case[near[0]]}?"
    return f"unknown field; valid fields: {', '.join(sorted(valid))}"


def _read_secrets(values: Secrets, field_errors: list[FieldError]) -> dict[str, str | SecretReference]:
    hidden: dict[str, str | SecretReference] = {}
    for name, value in values.items():
        if value is None or value == "":
            continue
        if name not in SECRET_FIELDS and name not in SECRET_FIELDS.values():
            text = _UNSUPPORTED.get(name)
            if text is None and name in _PUBLIC:
                text = "is not a secret; move it to `security`"
            field_errors.append(FieldError(f"secrets.{name}", text or _describe_unknown(name, SECRET_FIELDS)))
        elif isinstance(value, str):
            hidden[SECRET_FIELDS.get(name, name)] = value
        else:
            try:
                hidden[SECRET_FIELDS.get(name, name)] = SecretReference.parse(value)
            except ValueError as error:
                field_errors.append(FieldError(f"secrets.{name}", str(error)))
    return hidden


def _check_security(
    public: Mapping[str, str | bool], hidden: Mapping[str, str | SecretReference] | None, *, mechanism_refused: bool
) -> Iterator[FieldError]:
    protocol = str(public["protocol"])
    if protocol not in _PROTOCOLS:
        yield FieldError("security.protocol", f"must be {', '.join(_PROTOCOLS[:-1])} or {_PROTOCOLS[-1]}")
        return
    sasl = protocol.startswith("SASL_")
    if not sasl or "mechanism" in public:
        yield from check_mechanism_fields(find_mechanism(public), public, None if hidden is None else hidden.keys())
    elif not mechanism_refused:
        text = f"is required for {protocol}; must be one of {', '.join(_SASL_MECHANISMS)}"
        yield FieldError("security.mechanism", text)
    if not sasl and "mechanism" in public:
        yield FieldError("security.mechanism", f"is not used with {protocol}; set protocol to SASL_...")
    if find_mechanism(public) == "GSSAPI" and PRINCIPAL.fullmatch(str(public.get("username", "x"))) is None:
        yield FieldError("security.username", _PLAIN_NAME)
    for name, value in public.items():
        if text := _check_value(name, value):
            yield FieldError(build_field_path(name), text)
    for name, hidden_value in (hidden or {}).items():
        if name in public:
            yield FieldError(f"secrets.{name}", "is also set under `security`; set it once")
        if isinstance(hidden_value, str) and (text := _check_value(name, hidden_value)):
            yield FieldError(f"secrets.{build_field_path(name).partition('.')[2]}", text)


def _check_value(name: str, value: str | bool) -> str:
    """What is wrong with the value of a field; empty if nothing is."""
    text = ""
    if name in _FLAGS:
        text = "" if isinstance(value, bool) else "must be true or false"
    elif not isinstance(value, str):
        text = "must be a string"
    elif name in _PEM:
        text = find_pem_error(value, _PEM[name]) or ""
    elif not value.isprintable():
        text = "must be printable characters on one line"
    elif name in _PATTERNS and _PATTERNS[name][0].fullmatch(value) is None:
        text = _PATTERNS[name][1] + _suggest_extension(name, value)
    elif name == "token_url" and not _is_token_url(value):
        text = "must be a URL like https://login.example/oauth2/token, without user and fragment"
    return text


def _suggest_extension(name: str, text: str) -> str:
    """The names without the prefix that they have in JAAS files and URLs; empty if no name has it."""
    if name != "extensions":
        return ""
    names = [one.partition("=")[0].strip() for one in text.split(",")]
    suggested = [
        short for one in names if re.fullmatch("[A-Za-z]+", short := one.removeprefix("extension_")) and short != one
    ]
    return f"; did you mean {' and '.join(suggested)}?" if suggested else ""


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
