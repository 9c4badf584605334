"""Rows of the registry -> bodies of answers. Pure; the routers and `evidence` call it."""

from __future__ import annotations

from lagscale.domain.policy import Policy
from lagscale.kafka.security import shown
from lagscale.store.registry.database import Row
from lagscale.store.registry.keys import NewKey
from services.api.payloads import BindingOut, ClusterOut, KeyMade, KeyOut, MonitorOut, State, TenantOut


def tenant_of(row: Row) -> TenantOut:
    """A tenant."""
    return TenantOut.model_validate({name: row[name] for name in TenantOut.model_fields})


def cluster_of(row: Row) -> ClusterOut:
    """A cluster, without its secrets."""
    return ClusterOut(
        name=row["name"],
        bootstrap_servers=row["bootstrap"],
        security={shown(name): value for name, value in row["security"].items()},
        has_secrets=row["secrets"] is not None,
        secret_references={shown(name): where for name, where in row["secret_references"].items()},
        properties=row["properties"],
        state=state_of(row, "state_"),
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        version=row["version"],
    )


def state_of(row: Row, prefix: str) -> State | None:
    """The state in the columns of this prefix; None when the scraper has written none."""
    if row[f"{prefix}code"] is None:
        return None
    return State.model_validate({name: row[f"{prefix}{name}"] for name in State.model_fields})


def monitor_of(row: Row) -> MonitorOut:
    """A monitor."""
    columns = [name for name in MonitorOut.model_fields if name != "scope"]
    return MonitorOut.model_validate({name: row[name] for name in columns} | {"scope": state_of(row, "scope_")})


def binding_of(row: Row) -> BindingOut:
    """A binding."""
    return BindingOut.model_validate({name: row[name] for name in BindingOut.model_fields})


def key_of(row: Row) -> KeyOut:
    """An API key, without its secret."""
    return KeyOut.model_validate({name: row[name] for name in KeyOut.model_fields})


def made_key_of(made: NewKey) -> KeyMade:
    """A fresh API key, with its secret."""
    return KeyMade.model_validate(key_of(made.row).model_dump() | {"key": made.text})


def resolved(policy: Policy) -> dict[str, str | int | float | bool]:
    """Every key of the policy with its value in force."""
    ranges = (str(low) if low == high else f"{low}-{high}" for low, high in policy.partition_limitation)
    return {
        "lagThreshold": policy.lag_threshold,
        "targetLag": policy.target_lag,
        "sustainSeconds": policy.sustain_ms / 1000,
        "samplingInterval": policy.sampling_ms / 1000,
        "maxGapSeconds": policy.max_gap_ms / 1000,
        "staleAfterSeconds": policy.stale_after_ms / 1000,
        "activationLagThreshold": policy.activation_lag_threshold,
        "activationSustainSeconds": policy.activation_sustain_ms / 1000,
        "workSeconds": policy.work_ms / 1000,
        "persistenceScope": policy.persistence_scope.value,
        "offsetResetPolicy": policy.offset_reset_policy.value,
        "scaleToZeroOnInvalidOffset": policy.scale_to_zero_on_invalid_offset,
        "isolationLevel": policy.isolation_level.value,
        "partitionLimitation": ",".join(ranges) or "all",
        "allowIdleConsumers": policy.allow_idle_consumers,
        "consumersPerReplica": policy.consumers_per_replica,
        "holdSeconds": policy.hold_ms / 1000,
        "scaleUpStabilization": policy.scale_up_ms / 1000,
        "scaleDownStabilization": policy.scale_down_ms / 1000,
        "limitToPartitionsWithLag": policy.limit_to_lagging,
        "ensureEvenDistributionOfPartitions": policy.even_split,
        "stuckAfterSeconds": policy.stuck_after_ms / 1000 if policy.stuck_after_ms else "off",
        "drainSeconds": policy.drain_ms / 1000,
        "metric": policy.metric.value,
    }
