"""Names of a cluster's canonical security that services share, and which of it is for platform administrators."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lagscale.kafka.properties import list_privileged_properties

#: The canonical `token_provider` of AWS MSK, which counts as a mechanism of its own.
MSK_PROVIDER = "aws_msk_iam"
MSK_IAM = "AWS_MSK_IAM"
#: A Kerberos name: the client puts it into a command line, so other characters are refused.
PRINCIPAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,254}", re.ASCII)
#: Canonical names that KEDA does not write in plain camel case.
_DISPLAY_NAMES = {
    "aws_access_key_id": "awsAccessKeyID",
    "extensions": "oauthExtensions",
    "token_provider": "saslTokenProvider",
}

_POD_ROLE_FIELDS = ("aws_role_arn", "aws_pod_role")


def display_name(name: str) -> str:
    """The public form of a canonical name: that of KEDA if it has one."""
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
    """Public names of what only a platform administrator may set for a cluster.

    It lends credentials of the pod, so a user who may not set it may not redirect such a cluster either.
    """
    found = [f"properties.{name}" for name in list_privileged_properties(properties)]
    if find_mechanism(security) == "GSSAPI":
        # The client runs kinit with the keytab of the pod.
        found.append("security.mechanism")
    return found + [f"security.{display_name(name)}" for name in _POD_ROLE_FIELDS if security.get(name)]


def uses_pod_role(security: Mapping[str, object]) -> bool:
    """Whether its tokens are signed by the role of the scraper's pod."""
    return any(security.get(name) for name in _POD_ROLE_FIELDS)
