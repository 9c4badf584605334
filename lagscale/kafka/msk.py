"""Tokens for AWS MSK with IAM, signed by the library of AWS; it comes with the extra `msk`.

A token is signed locally with the given keys; only for the role of the pod are keys requested from AWS.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lagscale.errors import TokenUnavailable
from lagscale.kafka.tokens import Token

_SIGNER_MISSING = "this image has no signer for AWS MSK; build it with the extra `msk` (docs/clusters.md)"
_NO_ROLE = "AWS returned no keys for the pod of the scraper; check the role of its service account"


@dataclass(frozen=True, slots=True)
class MskIam:
    """How to sign the tokens of one cluster: with keys, by the role of the pod, or by a role that the pod may assume.

    Attributes:
        region: AWS region.
        pod_role: whether to use the role of the pod without keys.
        role_arn: the role to assume.
    """

    region: str
    access_key_id: str = field(default="", repr=False)
    secret_access_key: str = field(default="", repr=False)
    session_token: str | None = field(default=None, repr=False)
    pod_role: bool = False
    role_arn: str | None = None

    def fetch(self) -> Token:
        """Sign one token; it is valid for 15 minutes.

        Raises:
            TokenUnavailable: without keys, or without the library.
        """
        try:
            from aws_msk_iam_sasl_signer import MSKAuthTokenProvider as signer
        except ImportError:
            raise TokenUnavailable(_SIGNER_MISSING) from None
        value, expires_ms = self._sign(signer)
        return Token(str(value), int(expires_ms) / 1000)

    def _sign(self, signer: Any) -> tuple[str, int]:
        from botocore.exceptions import BotoCoreError, ClientError

        if self.access_key_id and self.secret_access_key:
            provider = _build_key_provider(self.access_key_id, self.secret_access_key, self.session_token)
            found: tuple[str, int] = signer.generate_auth_token_from_credentials_provider(self.region, provider)
            return found
        if not self.pod_role and self.role_arn is None:
            # Never the role of the pod by default: the token would go to any broker that a tenant registers.
            raise TokenUnavailable("awsAccessKeyID and awsSecretAccessKey are missing; store the secrets again")
        try:
            if self.role_arn is not None:
                found = signer.generate_auth_token_from_role_arn(self.region, self.role_arn, "lagscale")
            else:
                found = signer.generate_auth_token(self.region)
        except (BotoCoreError, ClientError, AttributeError):
            # The library raises AttributeError without keys.
            raise TokenUnavailable(_NO_ROLE) from None
        return found


def _build_key_provider(access_key_id: str, secret_access_key: str, session_token: str | None) -> Any:
    from botocore.credentials import CredentialProvider, Credentials

    class StaticKeyProvider(CredentialProvider):  # type: ignore[misc]
        """Fixed keys."""

        def load(self) -> Credentials:
            return Credentials(access_key_id, secret_access_key, session_token)

    return StaticKeyProvider()
