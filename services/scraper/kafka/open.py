"""A cluster's client from its registration and its secrets; whoever asks clusters opens them here."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from lagscale.errors import SecretReferenceBroken, SecretsUnreadable, TokenUnavailable
from lagscale.kafka.addresses import ANYWHERE, AddressRules
from lagscale.kafka.client import client_config
from lagscale.kafka.features import FeatureMissing
from lagscale.kafka.secrets import Outside, resolved
from lagscale.kafka.token_makers import token_maker
from lagscale.kafka.tokens import Tokens, TokenSource
from lagscale.store.encryption import SecretBox
from lagscale.store.scraping.targets import ClusterEntry
from services.scraper.kafka.clients import Clients
from services.scraper.kafka.cluster import KafkaCluster
from services.scraper.kafka.status import Code, Problem

#: Secrets are compared by digests under a key that ends with the process.
_DIGEST_KEY = os.urandom(32)
_CODES: Mapping[type[Exception], Code] = {
    SecretsUnreadable: Code.SECRETS_UNREADABLE,
    SecretReferenceBroken: Code.REFERENCE_BROKEN,
    TokenUnavailable: Code.TOKEN_UNAVAILABLE,
    FeatureMissing: Code.MECHANISM_MISSING,
}


@dataclass(frozen=True, slots=True)
class Opening:
    """What clients of one process are opened with.

    Attributes:
        box: opens what is sealed.
        outside: where references lead.
        rules: which addresses token endpoints may have.
    """

    clients: Clients
    box: SecretBox
    outside: Outside = field(default_factory=Outside)
    rules: AddressRules = ANYWHERE
    tokens: Tokens = field(default_factory=Tokens)

    def close(self) -> None:
        """Let all clients go, and renew no token."""
        self.tokens.close()
        self.clients.close()

    def open(self, cluster: ClusterEntry, *, proven: bool = True) -> KafkaCluster | Problem | None:
        """The cluster's client, or why there is none; None while none is free. Never waits for anybody.

        Whoever gets one says `rest` at the end. `proven`: whether the cluster answered when it was asked last.
        """
        try:
            return self._opened(cluster, proven)
        except (SecretReferenceBroken, TokenUnavailable) as missing:
            return Problem(_CODES[type(missing)], missing.message)
        except (SecretsUnreadable, ValueError) as refused:
            return Problem(_CODES.get(type(refused), Code.SETTINGS_REFUSED))

    def rest(self, client: object) -> None:
        """A user of this client has ended."""
        if isinstance(client, KafkaCluster):
            self.clients.rest(client)

    def _opened(self, cluster: ClusterEntry, proven: bool) -> KafkaCluster | Problem | None:
        hidden = self.box.open(cluster.sealed) if cluster.sealed is not None else {}
        hidden = resolved(cluster.tenant, hidden, cluster.references, self.outside)
        # A rotated file is another version too, though nobody changed the registration.
        version = (cluster.version, _digest(hidden))
        source = self._source(cluster, version, hidden)
        if source is not None and source.token() is None:
            return Problem(Code.TOKEN_PENDING)
        number = None if source is None else source.number
        hand_over = None if source is None else source.hand_over
        return self.clients.get(
            cluster.cluster_id,
            version,
            lambda: client_config(cluster.bootstrap, cluster.security, hidden, cluster.properties, hand_over),
            tenant_id=cluster.tenant_id,
            proven=proven,
            token=number,
        )

    def _source(
        self, cluster: ClusterEntry, version: tuple[int, bytes], hidden: Mapping[str, str]
    ) -> TokenSource | None:
        make = token_maker(cluster.security, hidden, self.rules)
        if make is None:
            return None
        return self.tokens.source(cluster.cluster_id, version, cluster.tenant_id, make)


def _digest(hidden: Mapping[str, str]) -> bytes:
    text = json.dumps(dict(hidden), sort_keys=True).encode()
    return hashlib.blake2b(text, key=_DIGEST_KEY, digest_size=16).digest()
