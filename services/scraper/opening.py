"""A cluster's client from its registration and its secrets; whoever asks clusters opens them here."""

from __future__ import annotations

from typing import Any

from lagscale.errors import SecretsUnreadable
from lagscale.kafka.client_config import client_config
from lagscale.store.secrets import SecretBox
from lagscale.store.targets import ClusterEntry
from services.scraper.clients import Clients
from services.scraper.kafka import KafkaCluster
from services.scraper.problems import Code, Problem


def opened(
    clients: Clients, box: SecretBox, cluster: ClusterEntry, *, proven: bool = True
) -> KafkaCluster | Problem | None:
    """The cluster's client, or why there is none; None while none is free. Whoever got one says `closed` at the end."""

    def config() -> dict[str, Any]:
        hidden = box.open(cluster.sealed) if cluster.sealed is not None else {}
        return client_config(cluster.bootstrap, cluster.security, hidden)

    try:
        return clients.get(cluster.cluster_id, cluster.version, config, tenant_id=cluster.tenant_id, proven=proven)
    except SecretsUnreadable:
        return Problem(Code.SECRETS_UNREADABLE)
    except ValueError:
        return Problem(Code.SETTINGS_REFUSED)


def closed(clients: Clients, cluster: ClusterEntry) -> None:
    """The end of a use of the cluster's client."""
    clients.rest(cluster.cluster_id, cluster.version)
