"""Opens the client of a cluster from its registration and its secrets."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from lagscale.domain.state_codes import StateCode
from lagscale.errors import SecretReferenceBroken, SecretsUnreadable, TokenUnavailable
from lagscale.kafka.addresses import ANY_ADDRESS, AddressRules
from lagscale.kafka.client import FeatureMissing, build_client_config
from lagscale.kafka.secrets import SecretSources, resolve_secrets
from lagscale.kafka.tokens import TokenCache, TokenSource, build_token_fetcher
from lagscale.store.encryption import Keyring
from lagscale.store.scraping.targets import ClusterEntry
from services.scraper.kafka.clients import Clients
from services.scraper.kafka.cluster import KafkaCluster
from services.scraper.polling.round import PollProblem

#: Secrets are compared by digests with a key that ends with the process.
_DIGEST_KEY = os.urandom(32)
_CODES: Mapping[type[Exception], StateCode] = {
    SecretsUnreadable: StateCode.SECRETS_UNREADABLE,
    SecretReferenceBroken: StateCode.REFERENCE_BROKEN,
    TokenUnavailable: StateCode.TOKEN_UNAVAILABLE,
    FeatureMissing: StateCode.MECHANISM_MISSING,
}


@dataclass(frozen=True, slots=True)
class ClusterOpener:
    """Opens the clients of one process.

    Attributes:
        clients: keeps them.
        keyring: decrypts stored secrets.
        secret_sources: files and variables that secret references name.
        rules: addresses that token endpoints may have.
        tokens: keeps and renews access tokens.
    """

    clients: Clients
    keyring: Keyring
    secret_sources: SecretSources = field(default_factory=SecretSources)
    rules: AddressRules = ANY_ADDRESS
    tokens: TokenCache = field(default_factory=TokenCache)

    def close(self) -> None:
        """Drop all clients and stop renewing tokens."""
        self.tokens.close()
        self.clients.close()

    def open(self, cluster: ClusterEntry, *, responsive: bool = True) -> KafkaCluster | PollProblem | None:
        """The cluster's client until `release`, or why there is none; None while none is free. Never blocks.

        `responsive`: whether the cluster answered its last poll.
        """
        try:
            return self._open_client(cluster, responsive)
        except (SecretReferenceBroken, TokenUnavailable) as missing:
            return PollProblem(_CODES[type(missing)], missing.message)
        except (SecretsUnreadable, ValueError) as refused:
            return PollProblem(_CODES.get(type(refused), StateCode.SETTINGS_REFUSED))

    def release(self, client: object) -> None:
        """End one use of this client."""
        if isinstance(client, KafkaCluster):
            self.clients.release(client)

    def _open_client(self, cluster: ClusterEntry, responsive: bool) -> KafkaCluster | PollProblem | None:
        secret_values = self.keyring.decrypt(cluster.encrypted_secrets) if cluster.encrypted_secrets is not None else {}
        secret_values = resolve_secrets(cluster.tenant, secret_values, cluster.references, self.secret_sources)
        # A rotated secret file is another version too, although the registration did not change.
        version = (cluster.version, _compute_digest(secret_values))
        source = self._build_token_source(cluster, version, secret_values)
        if source is not None and source.token() is None:
            return PollProblem(StateCode.TOKEN_PENDING)
        number = None if source is None else source.generation
        provide_token = None if source is None else source.provide_token
        return self.clients.get(
            cluster.cluster_id,
            version,
            lambda: build_client_config(
                cluster.bootstrap, cluster.security, secret_values, cluster.properties, provide_token
            ),
            tenant_id=cluster.tenant_id,
            responsive=responsive,
            token=number,
        )

    def _build_token_source(
        self, cluster: ClusterEntry, version: tuple[int, bytes], secret_values: Mapping[str, str]
    ) -> TokenSource | None:
        make = build_token_fetcher(cluster.security, secret_values, self.rules)
        if make is None:
            return None
        return self.tokens.source(cluster.cluster_id, version, cluster.tenant_id, make)


def _compute_digest(secret_values: Mapping[str, str]) -> bytes:
    text = json.dumps(dict(secret_values), sort_keys=True).encode()
    return hashlib.blake2b(text, key=_DIGEST_KEY, digest_size=16).digest()
