"""Opens the client of a cluster from its registration and its secrets.

Apart from the options of the stream, which Spark's planning and committing processes read without a Kafka client.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lagscale.domain.state_codes import StateCode
from lagscale.errors import SecretReferenceBroken, SecretsUnreadable, TokenUnavailable
from lagscale.kafka.addresses import ANY_ADDRESS, AddressRules
from lagscale.kafka.client import FeatureMissing, build_client_config
from lagscale.kafka.secrets import SecretSources, resolve_secrets
from lagscale.kafka.tokens import TokenCache, build_token_fetcher
from lagscale.settings import read_tenant_variables
from lagscale.store.encryption import Keyring
from lagscale.store.scraping.targets import ClusterEntry
from services.scraper.engine.options import EngineOptions
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
    """Opens the clients of one process; the rules apply to token endpoints."""

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
        make = build_token_fetcher(cluster.security, secret_values, self.rules)
        source = None if make is None else self.tokens.source(cluster.cluster_id, version, cluster.tenant_id, make)
        if source is not None and source.token() is None:
            return PollProblem(StateCode.TOKEN_PENDING)
        number, provide_token = (None, None) if source is None else (source.generation, source.provide_token)

        def build_config() -> dict[str, Any]:
            settings = cluster.security, secret_values, cluster.properties
            return build_client_config(cluster.bootstrap, *settings, provide_token)

        key, tenant_id = (cluster.cluster_id, version), cluster.tenant_id
        return self.clients.get(*key, build_config, tenant_id=tenant_id, responsive=responsive, token=number)


def build_opener(options: EngineOptions, limit: int) -> ClusterOpener:
    """An opener with at most `limit` clients.

    Tenants' secret variables are those of this process, so executors need them too.
    """
    rules = AddressRules.from_text(options.addresses)
    directory = Path(options.secret_directory) if options.secret_directory else None
    secret_sources = SecretSources(directory, read_tenant_variables())
    return ClusterOpener(Clients(limit, rules), Keyring(options.secret_keys), secret_sources, rules)


def _compute_digest(secret_values: Mapping[str, str]) -> bytes:
    text = json.dumps(dict(secret_values), sort_keys=True).encode()
    return hashlib.blake2b(text, key=_DIGEST_KEY, digest_size=16).digest()
