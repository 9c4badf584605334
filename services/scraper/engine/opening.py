"""How a process of the pipeline opens clusters, from the stream's options and its own environment."""

from __future__ import annotations

from pathlib import Path

from lagscale.kafka.addresses import AddressRules
from lagscale.kafka.secrets import Outside
from lagscale.settings import tenant_variables
from lagscale.store.encryption import SecretBox
from services.scraper.engine.options import Options
from services.scraper.kafka.clients import Clients
from services.scraper.kafka.open import Opening


def opening_of(options: Options, limit: int) -> Opening:
    """A set of clients of its own, so many at most. Tenants' variables are those of this process, so executors need them too."""
    rules = AddressRules.of_text(options.addresses)
    directory = Path(options.secret_directory) if options.secret_directory else None
    return Opening(Clients(limit, rules), SecretBox(options.secret_keys), Outside(directory, tenant_variables()), rules)
