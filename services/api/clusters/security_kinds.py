"""The kinds of a cluster's security: what each needs, what it may have, and what only the platform may choose."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lagscale.errors import Fault
from lagscale.kafka.security import MSK_IAM, shown

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
class Kind:
    """One kind, by canonical names: what it needs, and what else it may have."""

    needs: tuple[str, ...]
    may: tuple[str, ...] = ()


_PASSWORD = Kind(("username", "password"))
KINDS: Mapping[str, Kind] = {
    "PLAIN": _PASSWORD,
    "SCRAM-SHA-256": _PASSWORD,
    "SCRAM-SHA-512": _PASSWORD,
    "OAUTHBEARER": Kind(("username", "password", "token_url"), ("scopes", "extensions", "token_ca")),
    MSK_IAM: Kind(
        ("aws_region",),
        ("aws_role_arn", "aws_pod_role"),
    ),
    "GSSAPI": Kind(("username",), ("realm", "kerberos_service_name")),
}
#: What has a use with any protocol.
_ALWAYS = frozenset({"protocol", "mechanism", "token_provider", "ca", "certificate", "verify_hostname"})
#: What must be given as a secret, or is known to be one.
SECRETS = frozenset(
    {"password", "key", "key_password", "aws_access_key_id", "aws_secret_access_key", "aws_session_token"}
)
_AWS_KEYS = ("aws_access_key_id", "aws_secret_access_key")


def check_kind(kind: str | None, public: Mapping[str, object], hidden: Collection[str] | None) -> list[Fault]:
    """The faults of what is given for this kind; a kind of None is a cluster without SASL.

    Args:
        kind: the mechanism, or `AWS_MSK_IAM`.
        public: the canonical form.
        hidden: names of the secrets; None while they are kept as they are.
    """
    wanted = Kind(()) if kind is None else KINDS[kind]
    faults = []
    for name in wanted.needs:
        if name in public or (name in hidden if hidden is not None else name in SECRETS):
            continue
        more = ", here or with all the secrets again" if hidden is None else ""
        faults.append(Fault(field(name), f"is needed for {kind}{more}"))
    for name in [*public, *(hidden or ())]:
        # A secret that is not used is no harm: one Secret often serves several clusters.
        if name in SECRETS:
            continue
        if name not in _ALWAYS and name not in wanted.needs and name not in wanted.may:
            protocol = public.get("protocol")
            way = f"set protocol to SASL_... in place of {protocol}" if kind is None else f"leave it out with {kind}"
            faults.append(Fault(field(name), f"has no use here; {way}"))
    if kind == MSK_IAM:
        faults += _check_msk(public, hidden)
    return faults


def _check_msk(public: Mapping[str, object], hidden: Collection[str] | None) -> list[Fault]:
    faults = []
    if public.get("protocol") != "SASL_SSL":
        faults.append(Fault("security.protocol", "must be SASL_SSL for AWS_MSK_IAM (`tls` enable); MSK has no other"))
    lent = "aws_role_arn" in public or public.get("aws_pod_role") is True
    if "aws_role_arn" in public and public.get("aws_pod_role") is False:
        faults.append(Fault("security.awsRoleArn", "is taken on by the pod's role, so awsPodRole cannot be false"))
    if hidden is None:
        return faults
    for name in _AWS_KEYS:
        if lent and name in hidden:
            faults.append(Fault(field(name), "cannot stand beside awsRoleArn and awsPodRole; give one or the other"))
        elif not lent and name not in hidden:
            faults.append(
                Fault(
                    field(name), "is needed for AWS_MSK_IAM; only a platform administrator may lend the pod's own role"
                )
            )
    return faults


def field(name: str) -> str:
    """What a caller calls a canonical name."""
    return f"{'secrets' if name in SECRETS else 'security'}.{shown(name)}"
