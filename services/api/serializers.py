"""Rows of the registry -> bodies of answers. Pure; the routers and `evidence` call it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from lagscale.kafka.security import display_name as find_shown_name
from lagscale.store.registry.api_keys import CreatedKey
from lagscale.store.registry.monitor_spec import read_given
from lagscale.store.registry.session import Row
from lagscale.store.registry.tenant_rules import PolicyViolation
from services.api.clusters.schemas import ClusterOut
from services.api.schemas import BindingOut, KeyOut, MonitorOut, NewKeyOut, StateOut
from services.api.tenants.policy_schemas import PolicyWarning
from services.api.tenants.schemas import TenantOut

#: The rest is listed by a route of its own.
_MAX_WARNINGS = 100


def serialize_tenant(row: Row, warnings: Iterable[PolicyViolation] = ()) -> TenantOut:
    """A tenant, and monitors that its rules forbid."""
    columns = {name: row[name] for name in TenantOut.model_fields if name != "warnings"}
    return TenantOut.model_validate(
        columns | {"warnings": list(islice(serialize_policy_warnings(warnings), _MAX_WARNINGS))}
    )


def serialize_policy_warnings(found: Iterable[PolicyViolation]) -> Iterator[PolicyWarning]:
    """A warning for every fault."""
    for violation in found:
        for field_error in violation.field_errors:
            yield PolicyWarning(monitor=violation.name, field=field_error.field, text=field_error.text)


def serialize_cluster(row: Row) -> ClusterOut:
    """A cluster, without its secrets."""
    return ClusterOut(
        name=row["name"],
        bootstrap_servers=row["bootstrap"],
        security={find_shown_name(name): value for name, value in row["security"].items()},
        has_secrets=row["secrets"] is not None,
        secret_references={find_shown_name(name): where for name, where in row["secret_references"].items()},
        properties=row["properties"],
        state=serialize_state(row, "state_"),
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        version=row["version"],
    )


def serialize_state(row: Row, prefix: str) -> StateOut | None:
    """The state in the columns of this prefix; None when the scraper has written none."""
    if row[f"{prefix}code"] is None:
        return None
    return StateOut.model_validate({name: row[f"{prefix}{name}"] for name in StateOut.model_fields})


def serialize_monitor(row: Row) -> MonitorOut:
    """A monitor."""
    derived = {"scope", "policy", "inherited_policy", "warnings"}
    policy = read_given(row)
    inherited = {name: text for name, text in row["policy"].items() if name not in policy}
    columns = {name: row[name] for name in MonitorOut.model_fields if name not in derived}
    display_name = {"scope": serialize_state(row, "scope_"), "policy": policy, "inherited_policy": inherited}
    return MonitorOut.model_validate(columns | display_name)


def serialize_binding(row: Row) -> BindingOut:
    """A binding."""
    return BindingOut.model_validate({name: row[name] for name in BindingOut.model_fields})


def serialize_key(row: Row) -> KeyOut:
    """An API key, without its secret."""
    return KeyOut.model_validate({name: row[name] for name in KeyOut.model_fields})


def serialize_new_key(derived: CreatedKey) -> NewKeyOut:
    """A fresh API key, with its secret."""
    return NewKeyOut.model_validate(serialize_key(derived.row).model_dump() | {"key": derived.text})
