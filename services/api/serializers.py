"""Rows of the registry -> bodies of answers. Pure; the routers and `evidence` call it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from lagscale.kafka.security import shown as named
from lagscale.store.registry.api_keys import NewKey
from lagscale.store.registry.monitor_spec import given_of
from lagscale.store.registry.session import Row
from lagscale.store.registry.tenant_rules import Outlaw
from services.api.clusters.schemas import ClusterOut
from services.api.schemas import BindingOut, KeyMade, KeyOut, MonitorOut, State
from services.api.tenants.policy_schemas import PolicyWarning
from services.api.tenants.schemas import TenantOut

#: The rest is listed by a route of its own.
_MOST_WARNINGS = 100


def tenant_of(row: Row, warnings: Iterable[Outlaw] = ()) -> TenantOut:
    """A tenant, and monitors that its rules forbid."""
    columns = {name: row[name] for name in TenantOut.model_fields if name != "warnings"}
    return TenantOut.model_validate(columns | {"warnings": list(islice(warnings_of(warnings), _MOST_WARNINGS))})


def warnings_of(found: Iterable[Outlaw]) -> Iterator[PolicyWarning]:
    """A warning for every fault."""
    for outlaw in found:
        for fault in outlaw.faults:
            yield PolicyWarning(monitor=outlaw.name, field=fault.field, text=fault.text)


def cluster_of(row: Row) -> ClusterOut:
    """A cluster, without its secrets."""
    return ClusterOut(
        name=row["name"],
        bootstrap_servers=row["bootstrap"],
        security={named(name): value for name, value in row["security"].items()},
        has_secrets=row["secrets"] is not None,
        secret_references={named(name): where for name, where in row["secret_references"].items()},
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
    made = {"scope", "policy", "inherited_policy", "warnings"}
    policy = given_of(row)
    inherited = {name: text for name, text in row["policy"].items() if name not in policy}
    columns = {name: row[name] for name in MonitorOut.model_fields if name not in made}
    shown = {"scope": state_of(row, "scope_"), "policy": policy, "inherited_policy": inherited}
    return MonitorOut.model_validate(columns | shown)


def binding_of(row: Row) -> BindingOut:
    """A binding."""
    return BindingOut.model_validate({name: row[name] for name in BindingOut.model_fields})


def key_of(row: Row) -> KeyOut:
    """An API key, without its secret."""
    return KeyOut.model_validate({name: row[name] for name in KeyOut.model_fields})


def made_key_of(made: NewKey) -> KeyMade:
    """A fresh API key, with its secret."""
    return KeyMade.model_validate(key_of(made.row).model_dump() | {"key": made.text})
