"""A cluster's canonical security and its secrets -> how its tokens are made; None where it needs none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lagscale.errors import TokenUnavailable
from lagscale.kafka.addresses import ANY_ADDRESS, AddressRefused, AddressRules
from lagscale.kafka.security import MSK_IAM, find_mechanism
from lagscale.kafka.tokens import Token


def build_token_fetcher(
    security: Mapping[str, Any], secrets: Mapping[str, str], rules: AddressRules = ANY_ADDRESS
) -> Callable[[], Token] | None:
    """What fetches one token of this cluster, and may wait for seconds.

    Args:
        security: the canonical form.
        secrets: all of them, resolved; they count before what `security` says.
        rules: which addresses the token endpoint may have.
    """
    given = {**security, **secrets}
    mechanism = find_mechanism(security)
    if mechanism == MSK_IAM:
        from lagscale.kafka.msk import MskIam

        return MskIam(
            str(given.get("aws_region", "")),
            given.get("aws_access_key_id", ""),
            given.get("aws_secret_access_key", ""),
            given.get("aws_session_token"),
            security.get("aws_pod_role") is True,
            security.get("aws_role_arn"),
        ).fetch
    if mechanism != "OAUTHBEARER":
        return None
    from lagscale.kafka.oauth import ClientCredentials

    client = ClientCredentials(
        str(given.get("token_url", "")),
        given.get("username", ""),
        given.get("password", ""),
        tuple(str(given.get("scopes", "")).replace(",", " ").split()),
        parse_extensions(str(given.get("extensions", ""))),
        given.get("token_ca"),
    )
    return lambda: client.fetch(lambda host, port: _resolve_endpoint(rules, host, port))


def parse_extensions(text: str) -> dict[str, str]:
    """KEDA's form `NAME=VALUE,NAME=VALUE`, read."""
    pairs = (part.partition("=") for part in text.split(",") if part.strip())
    return {name.strip(): value for name, _, value in pairs}


def _resolve_endpoint(rules: AddressRules, host: str, port: int) -> list[str]:
    try:
        return [address[0] for _, address in rules.resolve(host, port)]
    except AddressRefused as refused:
        raise TokenUnavailable(f"the token URL {refused}") from None
