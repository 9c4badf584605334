"""One monitor from the environment: registers it before a service starts. Every service may call it, also at once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import sqlalchemy as sa
import structlog

from lagscale.domain.policy.policy import Policy
from lagscale.domain.quotas import DEFAULT_QUOTAS, QUOTA_COLUMNS
from lagscale.domain.tenancy import ANY_NAMESPACE, DEFAULT_INSTANCE
from lagscale.errors import Conflict, InvalidInput
from lagscale.settings import ServiceSettings, SingleMonitorSettings
from lagscale.store.encryption import Keyring
from lagscale.store.registry import bindings, clusters, monitors, tenants
from lagscale.store.registry.clusters import ClusterSpec
from lagscale.store.registry.monitor_spec import MonitorDraft, MonitorSpec, build_spec
from lagscale.store.registry.session import RegistryDatabase, RegistrySession, TenantSession, as_tenant
from lagscale.store.registry.tables import cluster, tenant
from lagscale.store.registry.versions import WriteResult

log = structlog.get_logger(__name__)

#: The tenant's, the cluster's, and at need the monitor's name.
NAME = "default"
_ACTOR = "environment"
_TENANT = {
    "display_name": "",
    "auto_register": False,
    "min_sampling_seconds": 1,
    **{column: DEFAULT_QUOTAS[quota] for quota, column in QUOTA_COLUMNS.items()},
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
        threads.submit(asyncio.run, _register(url, settings, spec, _tick(environ))).result()


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


async def _register(url: str, settings: SingleMonitorSettings, spec: MonitorSpec, tick_seconds: float) -> None:
    database = RegistryDatabase(url, size=1)
    try:
        async with database.platform(_ACTOR) as session:
            # The services that start together wait for each other here, and the later ones find all done.
            await session.execute(sa.text("select pg_advisory_xact_lock(hashtextextended('lagscale.single', 0))"))
            row = await session.fetch_optional(
                sa.select(tenant).where(tenant.c.name == NAME).with_for_update(key_share=True)
            )
            if row is None:
                row = (await tenants.create(session, NAME, _TENANT)).row
            await _bind(session, int(row["id"]))
            tenant_session = await as_tenant(session, row)
            await _ensure_cluster(tenant_session, settings)
            outcome = await _put(tenant_session, spec, tick_seconds)
        log.info("single_monitor_ready", monitor=spec.name, changed=outcome.changed)
    finally:
        await database.close()


async def _put(session: TenantSession, spec: MonitorSpec, tick_seconds: float) -> WriteResult:
    """The monitor by the rules that a person gave the tenant; as it is already it stays, whatever they say."""
    draft = MonitorDraft(spec.name, spec.cluster, spec.consumer_group, spec.scope, spec.given)
    try:
        return await monitors.put(session, build_spec(draft, session.tenant, tick_seconds), None)
    except InvalidInput:
        row = await monitors.find_unchanged(session, draft, None)
        if row is None:
            raise
        return WriteResult(row)


async def _bind(session: RegistrySession, tenant_id: int) -> None:
    try:
        await bindings.put(session, tenant_id, DEFAULT_INSTANCE, ANY_NAMESPACE)
    except Conflict:
        # Namespaces were bound by hand, and that is to stay; the monitor is measured all the same.
        log.warning("single_monitor_not_bound", instance=DEFAULT_INSTANCE)


async def _ensure_cluster(session: TenantSession, settings: SingleMonitorSettings) -> None:
    row = await session.fetch_optional(sa.select(cluster.c.security).where(cluster.c.name == NAME))
    bootstrap = tuple(part.strip() for part in settings.brokers.split(",") if part.strip())
    security = {"protocol": "PLAINTEXT"} if row is None else row["security"]
    await clusters.put(session, ClusterSpec(NAME, bootstrap, security, by_platform=True), Keyring(""), None)
