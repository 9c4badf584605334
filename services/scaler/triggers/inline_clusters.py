"""Which of its tenant's clusters an inline trigger means, by name or by address. `decision.py` asks."""

from __future__ import annotations

from lagscale.domain.tenancy import suggest_names
from lagscale.errors import FieldError, InvalidInput, NotFound
from lagscale.store.records import TenantEntry
from services.scaler.triggers.metadata import TriggerMetadata


def find_inline_cluster(trigger: TriggerMetadata, tenant: TenantEntry) -> str:
    """The name of the tenant's cluster that an inline trigger means.

    Raises:
        NotFound: it has no such cluster.
        InvalidInput: name and addresses disagree, or the addresses are those of several.
    """
    named = trigger.cluster
    if named is not None and named not in tenant.clusters:
        near = suggest_names(named, tenant.clusters)
        listed = f"; near names: {', '.join(near)}" if near else ""
        raise NotFound(f"This namespace's tenant has no cluster {named[:63]!r}: register it, or correct it{listed}.")
    if not trigger.bootstrap and named is not None:
        return named
    matching = [
        name for name, addresses in sorted(tenant.clusters.items()) if frozenset(addresses) == trigger.bootstrap
    ]
    if named is not None:
        if named not in matching:
            raise InvalidInput(
                [FieldError("bootstrapServers", f"are not those of cluster {named!r}; give one of the two")]
            )
        return named
    if not matching:
        raise NotFound(
            "This namespace's tenant has no cluster of these bootstrapServers: register it, or correct them."
        )
    if len(matching) > 1:
        raise InvalidInput(
            [FieldError("bootstrapServers", f"are those of several clusters; give cluster: {' or '.join(matching)}")]
        )
    return matching[0]
