"""How a process of the pipeline opens clusters, from the stream's options and its own environment."""

from __future__ import annotations

from pathlib import Path

from lagscale.kafka.addresses import AddressRules
from lagscale.kafka.secrets import SecretSources
from lagscale.settings import read_tenant_variables
from lagscale.store.encryption import Keyring
from services.scraper.engine.options import EngineOptions
from services.scraper.kafka.clients import Clients
from services.scraper.kafka.open import ClusterOpener


def build_opener(options: EngineOptions, limit: int) -> ClusterOpener:
    """A set of clients of its own, so many at most. Tenants' variables are those of this process, so executors need them too."""
    rules = AddressRules.from_text(options.addresses)
    directory = Path(options.secret_directory) if options.secret_directory else None
    return ClusterOpener(
        Clients(limit, rules), Keyring(options.secret_keys), SecretSources(directory, read_tenant_variables()), rules
    )
