"""The kinds of a cluster's security: what each needs, what it may have, and what only the platform may choose."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lagscale.errors import FieldError
from lagscale.kafka.security import MSK_IAM, display_name

#: Every spelling, in small letters -> the canonical mechanism; MSK's is OAUTHBEARER with a token of its own.
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
    """One kind, by canonical names: what it needs, and what else it may have."""

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()


_PASSWORD_FIELDS = MechanismFields(("username", "password"))
FIELDS_BY_MECHANISM: Mapping[str, MechanismFields] = {
    "PLAIN": _PASSWORD_FIELDS,
    "SCRAM-SHA-256": _PASSWORD_FIELDS,
    "SCRAM-SHA-512": _PASSWORD_FIELDS,
    "OAUTHBEARER": MechanismFields(("username", "password", "token_url"), ("scopes", "extensions", "token_ca")),
    MSK_IAM: MechanismFields(
        ("aws_region",),
        ("aws_role_arn", "aws_pod_role"),
    ),
    "GSSAPI": MechanismFields(("username",), ("realm", "kerberos_service_name")),
}
#: What has a use with any protocol.
_COMMON_FIELDS = frozenset({"protocol", "mechanism", "token_provider", "ca", "certificate", "verify_hostname"})
#: What must be given as a secret, or is known to be one.
SECRETS = frozenset(
    {"password", "key", "key_password", "aws_access_key_id", "aws_secret_access_key", "aws_session_token"}
)
_AWS_KEYS = ("aws_access_key_id", "aws_secret_access_key")


def check_mechanism_fields(
    mechanism: str | None, public: Mapping[str, object], hidden: Collection[str] | None
) -> list[FieldError]:
    """The faults of what is given for this kind; a kind of None is a cluster without SASL.

    Args:
        mechanism: the mechanism, or `AWS_MSK_IAM`.
        public: the canonical form.
        hidden: names of the secrets; None while they are kept as they are.
    """
    fields = MechanismFields(()) if mechanism is None else FIELDS_BY_MECHANISM[mechanism]
    field_errors = []
    for name in fields.required:
        if name in public or (name in hidden if hidden is not None else name in SECRETS):
            continue
        hint = ", here or with all the secrets again" if hidden is None else ""
        field_errors.append(FieldError(field(name), f"is needed for {mechanism}{hint}"))
    for name in [*public, *(hidden or ())]:
        # A secret that is not used is no harm: one Secret often serves several clusters.
        if name in SECRETS:
            continue
        if name not in _COMMON_FIELDS and name not in fields.required and name not in fields.optional:
            protocol = public.get("protocol")
            remediation = (
                f"set protocol to SASL_... in place of {protocol}"
                if mechanism is None
                else f"leave it out with {mechanism}"
            )
            field_errors.append(FieldError(field(name), f"has no use here; {remediation}"))
    if mechanism == MSK_IAM:
        field_errors += _check_msk(public, hidden)
    return field_errors


def _check_msk(public: Mapping[str, object], hidden: Collection[str] | None) -> list[FieldError]:
    field_errors = []
    if public.get("protocol") != "SASL_SSL":
        field_errors.append(
            FieldError("security.protocol", "must be SASL_SSL for AWS_MSK_IAM (`tls` enable); MSK has no other")
        )
    has_role = "aws_role_arn" in public or public.get("aws_pod_role") is True
    if "aws_role_arn" in public and public.get("aws_pod_role") is False:
        field_errors.append(
            FieldError("security.awsRoleArn", "is taken on by the pod's role, so awsPodRole cannot be false")
        )
    if hidden is None:
        return field_errors
    for name in _AWS_KEYS:
        if has_role and name in hidden:
            field_errors.append(
                FieldError(field(name), "cannot stand beside awsRoleArn and awsPodRole; give one or the other")
            )
        elif not has_role and name not in hidden:
            field_errors.append(
                FieldError(
                    field(name), "is needed for AWS_MSK_IAM; only a platform administrator may lend the pod's own role"
                )
            )
    return field_errors


def field(name: str) -> str:
    """What a caller calls a canonical name."""
    return f"{'secrets' if name in SECRETS else 'security'}.{display_name(name)}"
