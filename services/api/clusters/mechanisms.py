"""SASL mechanisms: their names, and the fields that each requires or accepts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from lagscale.errors import FieldError
from lagscale.kafka.security import MSK_IAM, display_name

#: Every spelling, in lower case -> canonical mechanism; that of MSK is OAUTHBEARER with its own token.
MECHANISMS: Mapping[str, str] = {
    "plain": "PLAIN",
    "plaintext": "PLAIN",
    "scram_sha256": "SCRAM-SHA-256",
    "scram-sha-256": "SCRAM-SHA-256",
    "scram_sha512": "SCRAM-SHA-512",
    "scram-sha-512": "SCRAM-SHA-512",
    "oauthbearer": "OAUTHBEARER",
    "aws_msk_iam": MSK_IAM,
    "gssapi": "GSSAPI",
}


@dataclass(frozen=True, slots=True)
class MechanismFields:
    """Fields of a mechanism, by canonical names."""

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()


_PASSWORD_FIELDS = MechanismFields(("username", "password"))
FIELDS_BY_MECHANISM: Mapping[str, MechanismFields] = {
    "PLAIN": _PASSWORD_FIELDS,
    "SCRAM-SHA-256": _PASSWORD_FIELDS,
    "SCRAM-SHA-512": _PASSWORD_FIELDS,
    "OAUTHBEARER": MechanismFields(("username", "password", "token_url"), ("scopes", "extensions", "token_ca")),
    MSK_IAM: MechanismFields(("aws_region",), ("aws_role_arn", "aws_pod_role")),
    "GSSAPI": MechanismFields(("username",), ("realm", "kerberos_service_name")),
}
#: Fields that every protocol accepts.
_COMMON_FIELDS = frozenset({"protocol", "mechanism", "token_provider", "ca", "certificate", "verify_hostname"})
#: Canonical names of fields that are secret.
SECRETS = frozenset(
    {"password", "key", "key_password", "aws_access_key_id", "aws_secret_access_key", "aws_session_token"}
)
#: Field under `secrets` -> canonical name.
SECRET_FIELDS = {
    "password": "password", "key": "key", "keyPassword": "key_password",
    "awsAccessKeyID": "aws_access_key_id", "awsAccessKeyId": "aws_access_key_id",
    "awsSecretAccessKey": "aws_secret_access_key", "awsSessionToken": "aws_session_token",
    "username": "username", "ca": "ca", "certificate": "certificate", "cert": "certificate", "tokenCa": "token_ca",
}  # fmt: skip
_AWS_KEYS = ("aws_access_key_id", "aws_secret_access_key")


def check_mechanism_fields(
    mechanism: str | None, public: Mapping[str, object], hidden: Collection[str] | None
) -> Iterator[FieldError]:
    """Errors of the fields that are given for a mechanism.

    Args:
        mechanism: the mechanism, or `AWS_MSK_IAM`; None for a cluster without SASL.
        public: the canonical form.
        hidden: names of the secrets; None if the stored ones stay unchanged.
    """
    fields = MechanismFields(()) if mechanism is None else FIELDS_BY_MECHANISM[mechanism]
    for name in fields.required:
        if name not in public and name not in (SECRETS if hidden is None else hidden):
            hint = ", here or together with all secrets" if hidden is None else ""
            yield FieldError(build_field_path(name), f"is required for {mechanism}{hint}")
    # An unused secret is accepted: one Kubernetes Secret often serves several clusters.
    accepted = SECRETS | _COMMON_FIELDS | {*fields.required, *fields.optional}
    remediation = (
        f"set protocol to SASL_... instead of {public.get('protocol')}"
        if mechanism is None
        else f"omit it with {mechanism}"
    )
    for name in [*public, *(hidden or ())]:
        if name not in accepted:
            yield FieldError(build_field_path(name), f"is not used here; {remediation}")
    if mechanism == MSK_IAM:
        yield from _check_msk(public, hidden)


def _check_msk(public: Mapping[str, object], hidden: Collection[str] | None) -> Iterator[FieldError]:
    if public.get("protocol") != "SASL_SSL":
        yield FieldError("security.protocol", "must be SASL_SSL for AWS_MSK_IAM (`tls` enable); MSK supports no other")
    has_role = "aws_role_arn" in public or public.get("aws_pod_role") is True
    if "aws_role_arn" in public and public.get("aws_pod_role") is False:
        yield FieldError("security.awsRoleArn", "is assumed by the pod's role, so awsPodRole cannot be false")
    if hidden is None:
        return
    for name in _AWS_KEYS:
        if has_role and name in hidden:
            text = "cannot be combined with awsRoleArn and awsPodRole; set one or the other"
            yield FieldError(build_field_path(name), text)
        elif not has_role and name not in hidden:
            text = "is required for AWS_MSK_IAM; only a platform administrator may use the role of the pod"
            yield FieldError(build_field_path(name), text)


def build_field_path(name: str) -> str:
    """The field of a request that has this canonical name."""
    return f"{'secrets' if name in SECRETS else 'security'}.{display_name(name)}"
