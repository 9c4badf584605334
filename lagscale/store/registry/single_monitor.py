"""One monitor from the environment: registers it before a service starts. Every service may call it, also at once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import sqlalchemy as sa
import structlog

from lagscale.domain.policy.policy import Policy
from lagscale.domain.quotas import COLUMNS, DEFAULTS
from lagscale.domain.tenancy import ANY_NAMESPACE, DEFAULT_INSTANCE
from lagscale.errors import Conflict, InvalidInput
from lagscale.settings import ServiceSettings, SingleMonitorSettings
from lagscale.store.encryption import SecretBox
from lagscale.store.registry import bindings, clusters, monitors, tenants
from lagscale.store.registry.clusters import ClusterSpec
from lagscale.store.registry.monitor_spec import Draft, MonitorSpec, built
from lagscale.store.registry.session import RegistryDatabase, TenantWork, Work, behind_wall
from lagscale.store.registry.tables import cluster, tenant
from lagscale.store.registry.versions import Outcome

log = structlog.get_logger(__name__)

#: The tenant's, the cluster's, and at need the monitor's name.
NAME = "default"
_ACTOR = "environment"
_TENANT = {
    "display_name": "",
    "auto_register": False,
    "min_sampling_seconds": 1,
    **{column: DEFAULTS[quota] for quota, column in COLUMNS.items()},
    "policy_defaults": {},
    "policy_limits": {},
    "max_auto_monitors": 1000,
    "auto_expiry_days": 7,
}
_LONGEST_NAME = 63


def ensure_single_monitor(url: str, environ: Mapping[str, str]) -> None:
    """Register tenant `default`, cluster `default`, the monitor and its binding, unless they are there as wanted.

    Synchronous and idempotent; safe when several services call it at once. The schema must be there. What a person
    changed since at the tenant and at the cluster's security stays.

    Args:
        url: the database, as in `LAGSCALE_DATABASE_URL`.
        environ: holds `KAFKA_BROKERS`, `KAFKA_TOPIC`, `KAFKA_GROUP_ID`, and policy keys by their variables.

    Raises:
        SettingsInvalid: the variables are incomplete.
        InvalidInput: the policy has faults, or the tenant's rules forbid it.
        StoreUnavailable: the database does not answer.
    """
    settings = SingleMonitorSettings.read(environ)
    spec = single_monitor(environ)
    # A thread of its own, because the caller may stand inside a running event loop.
    with ThreadPoolExecutor(1, "single-monitor") as threads:
        threads.submit(asyncio.run, _ensure(url, settings, spec, _tick(environ))).result()


def monitor_name(topic: str) -> str:
    """The topic's name, reduced to what a monitor's name may hold."""
    return re.sub(r"[^a-z0-9]+", "-", topic.lower()).strip("-")[:_LONGEST_NAME].strip("-") or NAME


def single_monitor(environ: Mapping[str, str]) -> MonitorSpec:
    """The monitor that the environment describes, checked without the database.

    Raises:
        SettingsInvalid: the variables are incomplete.
        InvalidInput: the policy has faults.
    """
    settings = SingleMonitorSettings.read(environ)
    given = settings.policy()
    topics = settings.topics()
    return MonitorSpec(
        name=monitor_name(topics[0]),
        cluster=NAME,
        consumer_group=settings.group.strip(),
        topics=tuple(topics),
        given=given,
        policy=Policy.parse(given, tick_seconds=_tick(environ)),
    )


def _tick(environ: Mapping[str, str]) -> float:
    return float(environ.get("LAGSCALE_TICK_SECONDS") or ServiceSettings.model_fields["tick_seconds"].default)


async def _ensure(url: str, settings: SingleMonitorSettings, spec: MonitorSpec, tick_seconds: float) -> None:
    database = RegistryDatabase(url, size=1)
    try:
        async with database.platform(_ACTOR) as work:
            # The services that start together wait for each other here, and the later ones find all done.
            await work.run(sa.text("select pg_advisory_xact_lock(hashtextextended('lagscale.single', 0))"))
            row = await work.find(sa.select(tenant).where(tenant.c.name == NAME).with_for_update(key_share=True))
            if row is None:
                row = (await tenants.create(work, NAME, _TENANT)).row
            await _bind(work, int(row["id"]))
            behind = await behind_wall(work, row)
            await _ensure_cluster(behind, settings)
            outcome = await _put(behind, spec, tick_seconds)
        log.info("single_monitor_ready", monitor=spec.name, changed=outcome.changed)
    finally:
        await database.close()


async def _put(work: TenantWork, spec: MonitorSpec, tick_seconds: float) -> Outcome:
    """The monitor by the rules that a person gave the tenant; as it is already it stays, whatever they say."""
    draft = Draft(spec.name, spec.cluster, spec.consumer_group, spec.scope, spec.given)
    try:
        return await monitors.put(work, built(draft, work.tenant, tick_seconds), None)
    except InvalidInput:
        row = await monitors.already(work, draft, None)
        if row is None:
            raise
        return Outcome(row)


async def _bind(work: Work, tenant_id: int) -> None:
    try:
        await bindings.put(work, tenant_id, DEFAULT_INSTANCE, ANY_NAMESPACE)
    except Conflict:
        # Namespaces were bound by hand, and that is to stay; the monitor is measured all the same.
        log.warning("single_monitor_not_bound", instance=DEFAULT_INSTANCE)


async def _ensure_cluster(work: TenantWork, settings: SingleMonitorSettings) -> None:
    row = await work.find(sa.select(cluster.c.security).where(cluster.c.name == NAME))
    bootstrap = tuple(part.strip() for part in settings.brokers.split(",") if part.strip())
    security = {"protocol": "PLAINTEXT"} if row is None else row["security"]
    await clusters.put(work, ClusterSpec(NAME, bootstrap, security, by_platform=True), SecretBox(""), None)
