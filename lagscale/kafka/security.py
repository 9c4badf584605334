"""Words of a cluster's canonical security that several services share, and what of it is the platform's to choose."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lagscale.kafka.properties import list_privileged as list_privileged_properties

#: The canonical `token_provider` of AWS MSK; a kind of its own beside the mechanisms.
MSK_PROVIDER = "aws_msk_iam"
MSK_IAM = "AWS_MSK_IAM"
#: Of Kerberos: the client puts these names into a command line, so nothing else may stand in them.
PRINCIPAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,254}", re.ASCII)
#: Canonical names that are shown otherwise than in camel case: as KEDA writes them.
_DISPLAY_NAMES = {
    "aws_access_key_id": "awsAccessKeyID",
    "extensions": "oauthExtensions",
    "token_provider": "saslTokenProvider",
}

_POD_ROLE_FIELDS = ("aws_role_arn", "aws_pod_role")


def display_name(name: str) -> str:
    """What users call a canonical name: KEDA's, where it has one."""
    first, *rest = name.split("_")
    return _DISPLAY_NAMES.get(name) or first + "".join(part.capitalize() for part in rest)


def find_mechanism(security: Mapping[str, object]) -> str | None:
    """The mechanism, `AWS_MSK_IAM`, or None without SASL."""
    if not str(security.get("protocol", "PLAINTEXT")).startswith("SASL_"):
        return None
    if security.get("token_provider") == MSK_PROVIDER:
        return MSK_IAM
    return str(security.get("mechanism"))


def list_privileged(security: Mapping[str, object], properties: Mapping[str, object]) -> list[str]:
    """What of a cluster only a platform administrator may choose, as users call it.

    It lends what is the pod's, so whoever may not choose it may not send it elsewhere either.
    """
    found = [f"properties.{name}" for name in list_privileged_properties(properties)]
    if find_mechanism(security) == "GSSAPI":
        # The client runs kinit for it, with the pod's keytab.
        found.append("security.mechanism")
    return found + [f"security.{display_name(name)}" for name in _POD_ROLE_FIELDS if security.get(name)]


def uses_pod_role(security: Mapping[str, object]) -> bool:
    """Whether its tokens are made by the role of the scraper's pod."""
    return any(security.get(name) for name in _POD_ROLE_FIELDS)
