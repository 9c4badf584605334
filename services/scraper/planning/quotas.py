"""Which targets fit into their tenant's quota of partitions. Pure; the planner calls it with what is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from lagscale.store.scraping.targets import TargetEntry


def apply_quotas(targets: Iterable[TargetEntry], quotas: Mapping[int, int]) -> list[TargetEntry]:
    """The targets with what each may have of its tenant's quota: what the older ones that fit have left.

    A target whose partitions nobody has counted yet takes nothing, so that it shows at its first poll whether it fits.

    Args:
        targets: of all tenants.
        quotas: by tenant; one that is not there has none to keep.
    """
    left = dict(quotas)
    limited: list[TargetEntry] = []
    for target in sorted(targets, key=lambda one: one.target_id):
        if target.tenant_id not in left:
            limited.append(target)
            continue
        room = left[target.tenant_id]
        limited.append(replace(target, left=room, quota=quotas[target.tenant_id]))
        if target.partitions is not None and target.partitions <= room:
            left[target.tenant_id] = room - target.partitions
    return limited
